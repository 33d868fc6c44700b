-- Exports what "sbroute import catalog" reads from one instance: one result set a view. It only reads.
-- Run it as a login that sees all databases (VIEW ANY DEFINITION and VIEW ANY DATABASE, or sysadmin).
--
-- With sqlcmd everything goes into one file; -W takes the padding off, -w keeps lines whole:
--   sqlcmd -S SERVER -E -d master -W -w 65535 -s "," -f 65001 -i queries.sql -o SERVER.csv
-- With SSMS run it and save each grid by "Save Results As", under any name (.csv), with headers or without.
--
-- Texts are in quotes, so that separators and blanks in names stay what they are. Databases that are not
-- online are left out: what the tables hold of them stays. A row with nothing but the first columns says
-- that the view is empty there.
SET NOCOUNT ON;
SET QUOTED_IDENTIFIER ON;

DECLARE @instance_name nvarchar(256), @exported_at varchar(40), @sql nvarchar(max);
DECLARE @machine_name nvarchar(256), @full_name nvarchar(512), @listener_names nvarchar(2000), @domain nvarchar(256);
SET @instance_name = CONVERT(nvarchar(256), SERVERPROPERTY('ServerName'));
SET @exported_at = CONVERT(varchar(30), SYSUTCDATETIME(), 126) + 'Z';

-- Names under which others may reach the instance; what cannot be found out stays NULL.
SET @machine_name = CONVERT(nvarchar(256), SERVERPROPERTY('MachineName'));
BEGIN TRY
    EXEC master.sys.xp_regread N'HKEY_LOCAL_MACHINE', N'SYSTEM\CurrentControlSet\Services\Tcpip\Parameters',
        N'Domain', @domain OUTPUT;
    IF @domain <> N'' SET @full_name = @machine_name + N'.' + @domain;
END TRY
BEGIN CATCH
    SET @full_name = NULL;
END CATCH;
IF OBJECT_ID(N'sys.availability_group_listeners') IS NOT NULL
    EXEC sys.sp_executesql
        N'SELECT @names = COALESCE(@names + N'' '', N'''') + dns_name FROM sys.availability_group_listeners;',
        N'@names nvarchar(2000) OUTPUT', @listener_names OUTPUT;

SELECT 'databases' AS view_name,
    '"' + REPLACE(@instance_name, '"', '""') + '"' AS instance_name,
    @exported_at AS exported_at,
    '"' + REPLACE(v.name, '"', '""') + '"' AS name,
    v.database_id AS database_id,
    v.service_broker_guid AS service_broker_guid,
    v.is_broker_enabled AS is_broker_enabled
FROM sys.databases AS v;

SELECT 'service_broker_endpoints' AS view_name,
    '"' + REPLACE(@instance_name, '"', '""') + '"' AS instance_name,
    @exported_at AS exported_at,
    v.endpoint_id AS endpoint_id,
    v.is_message_forwarding_enabled AS is_message_forwarding_enabled,
    '"' + REPLACE(@machine_name, '"', '""') + '"' AS machine_name,
    '"' + REPLACE(@full_name, '"', '""') + '"' AS full_name,
    '"' + REPLACE(@listener_names, '"', '""') + '"' AS listener_names,
    t.port AS port
FROM (SELECT 1 AS one) AS one
LEFT JOIN sys.service_broker_endpoints AS v ON 1 = 1
LEFT JOIN sys.tcp_endpoints AS t ON t.endpoint_id = v.endpoint_id;

SELECT 'tcp_endpoints' AS view_name,
    '"' + REPLACE(@instance_name, '"', '""') + '"' AS instance_name,
    @exported_at AS exported_at,
    v.endpoint_id AS endpoint_id,
    v.port AS port,
    '"' + REPLACE(v.ip_address, '"', '""') + '"' AS ip_address
FROM sys.tcp_endpoints AS v
WHERE v.type = 3;

-- One query over all databases a view: {db} and {name} stand for each database's name.
DECLARE @views TABLE (number int, query nvarchar(max));

INSERT INTO @views VALUES (1, N'SELECT ''routes'' AS view_name,
    ''"'' + REPLACE(@instance_name, ''"'', ''""'') + ''"'' AS instance_name,
    ''"'' + REPLACE({name}, ''"'', ''""'') + ''"'' AS database_name,
    @exported_at AS exported_at,
    ''"'' + REPLACE(v.name COLLATE Latin1_General_BIN, ''"'', ''""'') + ''"'' AS name,
    ''"'' + REPLACE(v.remote_service_name COLLATE Latin1_General_BIN, ''"'', ''""'') + ''"'' AS remote_service_name,
    ''"'' + REPLACE(v.broker_instance COLLATE Latin1_General_BIN, ''"'', ''""'') + ''"'' AS broker_instance,
    CONVERT(varchar(30), v.lifetime, 126) AS lifetime,
    ''"'' + REPLACE(v.address COLLATE Latin1_General_BIN, ''"'', ''""'') + ''"'' AS address,
    ''"'' + REPLACE(v.mirror_address COLLATE Latin1_General_BIN, ''"'', ''""'') + ''"'' AS mirror_address
FROM (SELECT 1 AS one) AS one LEFT JOIN {db}.sys.routes AS v ON 1 = 1');

INSERT INTO @views VALUES (2, N'SELECT ''services'' AS view_name,
    ''"'' + REPLACE(@instance_name, ''"'', ''""'') + ''"'' AS instance_name,
    ''"'' + REPLACE({name}, ''"'', ''""'') + ''"'' AS database_name,
    @exported_at AS exported_at,
    ''"'' + REPLACE(v.name COLLATE Latin1_General_BIN, ''"'', ''""'') + ''"'' AS name
FROM (SELECT 1 AS one) AS one LEFT JOIN {db}.sys.services AS v ON 1 = 1');

INSERT INTO @views VALUES (3, N'SELECT ''conversation_endpoints'' AS view_name,
    ''"'' + REPLACE(@instance_name, ''"'', ''""'') + ''"'' AS instance_name,
    ''"'' + REPLACE({name}, ''"'', ''""'') + ''"'' AS database_name,
    @exported_at AS exported_at,
    v.conversation_handle AS conversation_handle,
    v.conversation_id AS conversation_id,
    v.is_initiator AS is_initiator,
    v.conversation_group_id AS conversation_group_id,
    CONVERT(varchar(30), v.lifetime, 126) AS lifetime,
    ''"'' + REPLACE(v.far_service COLLATE Latin1_General_BIN, ''"'', ''""'') + ''"'' AS far_service,
    ''"'' + REPLACE(v.far_broker_instance COLLATE Latin1_General_BIN, ''"'', ''""'') + ''"'' AS far_broker_instance
FROM (SELECT 1 AS one) AS one LEFT JOIN {db}.sys.conversation_endpoints AS v ON 1 = 1');

INSERT INTO @views VALUES (4, N'SELECT {name} AS database_name,
    v.conversation_handle,
    v.to_service_name COLLATE Latin1_General_BIN,
    v.to_broker_instance COLLATE Latin1_General_BIN,
    v.from_service_name COLLATE Latin1_General_BIN,
    CONVERT(varchar(30), v.enqueue_time, 126),
    v.message_sequence_number,
    v.transmission_status COLLATE Latin1_General_BIN
FROM (SELECT 1 AS one) AS one LEFT JOIN {db}.sys.transmission_queue AS v ON 1 = 1');

-- The queues come by way of a table: the numbers of their statuses are still to be found.
DECLARE @queue TABLE (
    database_name nvarchar(128) COLLATE Latin1_General_BIN,
    conversation_handle uniqueidentifier,
    to_service_name nvarchar(256) COLLATE Latin1_General_BIN,
    to_broker_instance nvarchar(128) COLLATE Latin1_General_BIN,
    from_service_name nvarchar(256) COLLATE Latin1_General_BIN,
    enqueue_time varchar(30),
    message_sequence_number bigint,
    transmission_status nvarchar(max) COLLATE Latin1_General_BIN
);

DECLARE @number int;
SET @number = 1;
WHILE @number <= 4
BEGIN
    SET @sql = NULL;
    SELECT @sql = COALESCE(@sql + NCHAR(10) + N'UNION ALL' + NCHAR(10), N'')
        + REPLACE(REPLACE(v.query, N'{db}', QUOTENAME(d.name)), N'{name}', N'N''' + REPLACE(d.name, N'''', N'''''') + N'''')
    FROM @views AS v
    CROSS JOIN sys.databases AS d
    WHERE v.number = @number AND d.state = 0 AND HAS_DBACCESS(d.name) = 1;
    IF @number = 4
        INSERT INTO @queue EXEC sys.sp_executesql @sql;
    ELSE
        EXEC sys.sp_executesql @sql, N'@instance_name nvarchar(256), @exported_at varchar(40)',
            @instance_name, @exported_at;
    SET @number = @number + 1;
END;

-- A status is a text in the language of the server. sys.messages has the texts of every language, with
-- placeholders: %d, %.*ls, %I64d, %S_MSG and the like, %1! in translations. A placeholder is any text, all else is
-- compared character by character; of several texts that fit the one with the most characters counts.
DECLARE @texts TABLE (
    number int NOT NULL,
    rest nvarchar(max) COLLATE Latin1_General_BIN NOT NULL,
    pattern nvarchar(max) COLLATE Latin1_General_BIN NOT NULL,
    characters int NOT NULL
);
INSERT INTO @texts (number, rest, pattern, characters)
SELECT m.message_id, RTRIM(m.text), N'', 0
FROM sys.messages AS m
WHERE m.text IS NOT NULL AND m.message_id IN (
    8490, 8494, 9617, 9649, 9652, 9659, 9660, 9661, 9662, 9666, 9704, 9719, 9720, 9723, 9727, 9728,
    9730, 9731, 9733, 9734, 9735, 9737, 9743, 9744, 9745, 9746, 9747, 9748, 9749, 9750, 9751, 9752,
    9753, 9754, 9755, 9756, 9757, 9758, 9759, 9761, 9762, 9763, 9764, 9765, 9766, 9767, 9768, 9770,
    9771, 9772, 9773, 9776, 9777, 9779, 9780, 9781, 9783, 9784, 9785, 9787, 9788, 9789, 9790, 9791,
    9792, 9793, 9794, 9795, 9796, 9797, 9798, 11214, 11215, 11219, 28004, 28005, 28010, 28011, 28012, 28013, 28014,
    28015, 28016, 28017, 28018, 28021, 28022, 28023, 28024, 28025, 28026, 28027, 28028, 28029,
    28030, 28031, 28032, 28033, 28034, 28035, 28036, 28037, 28038, 28039, 28045, 28047, 28048,
    28050, 28051, 28054, 28056, 28059, 28070, 28071, 28075, 28079, 28080, 28081, 28082, 28098
);

-- Each turn takes the next placeholder of every text: what stands before it goes into the pattern with [ and _ as
-- themselves, %% is a percent sign, and a placeholder ends with its letter.
DECLARE @left int;
SET @left = 1;
WHILE @left > 0
BEGIN
    UPDATE t
    SET pattern = t.pattern + REPLACE(REPLACE(p.head, N'[', N'[[]'), N'_', N'[_]') + s.sign,
        characters = t.characters + LEN(p.head + N'.') - 1,
        rest = SUBSTRING(p.tail, s.taken + 1, 4000)
    FROM @texts AS t
    CROSS APPLY (
        SELECT SUBSTRING(t.rest, 1, CHARINDEX(N'%', t.rest + N'%') - 1) AS head,
            SUBSTRING(t.rest, CHARINDEX(N'%', t.rest + N'%') + 1, 4000) AS tail
    ) AS p
    CROSS APPLY (
        SELECT CASE WHEN p.tail LIKE N'[%]%' THEN N'[%]' ELSE N'%' END AS sign,
            CASE
                WHEN p.tail LIKE N'[%]%' THEN 1
                WHEN p.tail LIKE N'S[_]MSG%' THEN 5
                WHEN p.tail LIKE N'[0-9]!%' THEN 2
                WHEN p.tail LIKE N'[0-9][0-9]!%' THEN 3
                ELSE PATINDEX(N'%[diouxXcsp]%', LEFT(p.tail, 10))
            END AS taken
    ) AS s
    WHERE t.rest LIKE N'%[%]%';
    SET @left = @@ROWCOUNT;
END;
UPDATE t
SET pattern = t.pattern + REPLACE(REPLACE(t.rest, N'[', N'[[]'), N'_', N'[_]'),
    characters = t.characters + LEN(t.rest)
FROM @texts AS t;

-- The statuses of most messages; one that is not among the first thousand has no number, and its text tells.
DECLARE @statuses TABLE (
    transmission_status nvarchar(4000) COLLATE Latin1_General_BIN NOT NULL,
    error_number int
);
INSERT INTO @statuses (transmission_status)
SELECT TOP (1000) CONVERT(nvarchar(4000), q.transmission_status)
FROM @queue AS q
WHERE q.transmission_status <> N''
GROUP BY CONVERT(nvarchar(4000), q.transmission_status)
ORDER BY COUNT(*) DESC;
UPDATE s
SET error_number = (
    SELECT TOP (1) t.number
    FROM @texts AS t
    WHERE t.characters > 0
        AND (s.transmission_status LIKE t.pattern OR RTRIM(s.transmission_status) LIKE t.pattern)
    ORDER BY t.characters DESC, t.number
)
FROM @statuses AS s;

SELECT 'transmission_queue' AS view_name,
    '"' + REPLACE(@instance_name, '"', '""') + '"' AS instance_name,
    '"' + REPLACE(v.database_name, '"', '""') + '"' AS database_name,
    @exported_at AS exported_at,
    v.conversation_handle AS conversation_handle,
    '"' + REPLACE(v.to_service_name, '"', '""') + '"' AS to_service_name,
    '"' + REPLACE(v.to_broker_instance, '"', '""') + '"' AS to_broker_instance,
    '"' + REPLACE(v.from_service_name, '"', '""') + '"' AS from_service_name,
    v.enqueue_time AS enqueue_time,
    v.message_sequence_number AS message_sequence_number,
    '"' + REPLACE(LEFT(CONVERT(nvarchar(4000), v.transmission_status), 3900), '"', '""') + '"' AS transmission_status,
    s.error_number AS error_number
FROM @queue AS v
LEFT JOIN @statuses AS s ON s.transmission_status = CONVERT(nvarchar(4000), v.transmission_status)
OPTION (RECOMPILE);
