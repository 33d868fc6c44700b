-- Exports what "sbroute check" and "sbroute import catalog" read from one instance: one result set a view. It only
-- reads, never waits longer than 5 seconds for a lock, and exports no message bodies, keys or hashes.
-- It runs on SQL Server 2012 and later and on Azure SQL Managed Instance.
--
-- With sqlcmd everything goes into one file; -W takes the padding off, -w keeps lines whole:
--   sqlcmd -S SERVER -E -d master -W -w 65535 -s "," -f 65001 -i queries.sql -o SERVER.csv
-- With SSMS run it and save each grid by "Save Results As", under any name (.csv), with headers or without.
--
-- Every part is tried by itself. A part that is refused is a row of the last result set, export_errors, with its
-- error number; so is a database that the login cannot open. Permissions that the parts need:
{permissions}
-- The routing alone needs VIEW ANY DEFINITION, VIEW ANY DATABASE and CONNECT ANY DATABASE, or sysadmin.
--
-- Texts are in quotes, so that separators and blanks in names stay what they are. Databases that are not
-- online are left out: what the tables hold of them stays. A row with nothing but the first columns says
-- that the view is empty there.
SET NOCOUNT ON;
SET QUOTED_IDENTIFIER ON;
SET LOCK_TIMEOUT 5000;

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
BEGIN TRY
    EXEC sys.sp_executesql
        N'SELECT @names = COALESCE(@names + N'' '', N'''') + dns_name FROM sys.availability_group_listeners;',
        N'@names nvarchar(2000) OUTPUT', @listener_names OUTPUT;
END TRY
BEGIN CATCH
    SET @listener_names = NULL;
END CATCH;

-- The parts: {db} and {name} stand for each database's name. All of them return the same number of columns.
DECLARE @most bigint, @number int, @part varchar(40), @database nvarchar(128), @query nvarchar(max);
SET @most = {most};
DECLARE @parts TABLE (number int IDENTITY(1, 1), part varchar(40), is_of_databases bit, query nvarchar(max));
DECLARE @rows TABLE (part varchar(40), database_name nvarchar(128), {columns});
DECLARE @errors TABLE (part varchar(40), database_name nvarchar(128), error_number int, left_out bigint, message nvarchar(4000));
DECLARE @databases TABLE (number int IDENTITY(1, 1), name nvarchar(128));
INSERT INTO @databases (name) SELECT d.name FROM sys.databases AS d WHERE d.state = 0 AND HAS_DBACCESS(d.name) = 1;
INSERT INTO @errors (part, database_name, error_number, message)
SELECT 'every part', d.name, CASE WHEN d.state = 0 THEN 916 ELSE 942 END,
    CASE WHEN d.state = 0 THEN N'the login cannot open the database' ELSE N'the database is ' + d.state_desc END
FROM sys.databases AS d
WHERE d.state <> 0 OR COALESCE(HAS_DBACCESS(d.name), 0) = 0;
{parts}

-- Each part of each database by itself: an error of one leaves the others.
DECLARE @last int, @last_database int, @place int;
SELECT @number = 1, @last = MAX(p.number) FROM @parts AS p;
SELECT @last_database = MAX(d.number) FROM @databases AS d;
WHILE @number <= @last
BEGIN
    SET @place = 1;
    WHILE @place <= @last_database
    BEGIN
        SELECT @part = p.part, @query = p.query,
            @database = CASE WHEN p.is_of_databases = 1 THEN d.name END
        FROM @parts AS p CROSS JOIN @databases AS d
        WHERE p.number = @number AND d.number = @place;
        SET @sql = REPLACE(REPLACE(@query, N'{db}', COALESCE(QUOTENAME(@database), N'master')), N'{name}',
            COALESCE(N'N''' + REPLACE(@database, N'''', N'''''') + N'''', N'NULL'));
        BEGIN TRY
            INSERT INTO @rows EXEC sys.sp_executesql @sql,
                N'@most bigint, @machine_name nvarchar(256), @full_name nvarchar(512), @listener_names nvarchar(2000)',
                @most, @machine_name, @full_name, @listener_names;
        END TRY
        BEGIN CATCH
            INSERT INTO @errors (part, database_name, error_number, message)
            VALUES (@part, @database, ERROR_NUMBER(), ERROR_MESSAGE());
        END CATCH;
        SET @place = CASE WHEN @database IS NULL THEN @last_database ELSE @place END + 1;
    END;
    SET @number = @number + 1;
END;

{selects}

-- The endpoints go to the client as they are read, for there may be many.
SET @place = 1;
WHILE @place <= @last_database
BEGIN
    SELECT @database = d.name FROM @databases AS d WHERE d.number = @place;
    SET @query = N'{endpoints}';
    SET @sql = REPLACE(REPLACE(@query, N'{db}', QUOTENAME(@database)), N'{name}',
        N'N''' + REPLACE(@database, N'''', N'''''') + N'''');
    BEGIN TRY
        EXEC sys.sp_executesql @sql,
            N'@most bigint, @instance_name nvarchar(256), @exported_at varchar(40)', @most, @instance_name, @exported_at;
    END TRY
    BEGIN CATCH
        INSERT INTO @errors (part, database_name, error_number, message)
        VALUES ('conversation_endpoints', @database, ERROR_NUMBER(), ERROR_MESSAGE());
    END CATCH;
    SET @place = @place + 1;
END;
INSERT INTO @errors (part, database_name, left_out, message)
SELECT 'conversation_endpoints', c.database_name, SUM(CONVERT(bigint, c.{count_of_endpoints})) - @most, N'more endpoints than --most-endpoints'
FROM @rows AS c
WHERE c.part = 'endpoint_counts' AND c.{state_of_endpoints} <> N'CD'
GROUP BY c.database_name
HAVING SUM(CONVERT(bigint, c.{count_of_endpoints})) > @most;

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
DECLARE @count bigint;
SET @place = 1;
WHILE @place <= @last_database
BEGIN
    SELECT @database = d.name FROM @databases AS d WHERE d.number = @place;
    SET @query = N'SELECT TOP (@most) {name},
    v.conversation_handle,
    v.to_service_name COLLATE Latin1_General_BIN,
    v.to_broker_instance COLLATE Latin1_General_BIN,
    v.from_service_name COLLATE Latin1_General_BIN,
    CONVERT(varchar(30), v.enqueue_time, 126),
    v.message_sequence_number,
    v.transmission_status COLLATE Latin1_General_BIN
FROM (SELECT 1 AS one) AS one LEFT JOIN {db}.sys.transmission_queue AS v ON 1 = 1';
    SET @sql = REPLACE(REPLACE(@query, N'{db}', QUOTENAME(@database)), N'{name}',
        N'N''' + REPLACE(@database, N'''', N'''''') + N'''');
    BEGIN TRY
        INSERT INTO @queue EXEC sys.sp_executesql @sql, N'@most bigint', @most;
        IF @@ROWCOUNT >= @most
        BEGIN
            SET @sql = N'SELECT @count = COUNT_BIG(*) FROM ' + QUOTENAME(@database) + N'.sys.transmission_queue';
            EXEC sys.sp_executesql @sql, N'@count bigint OUTPUT', @count OUTPUT;
            IF @count > @most
                INSERT INTO @errors (part, database_name, left_out, message)
                VALUES ('transmission_queue', @database, @count - @most, N'more rows than --most-endpoints');
        END;
    END TRY
    BEGIN CATCH
        INSERT INTO @errors (part, database_name, error_number, message)
        VALUES ('transmission_queue', @database, ERROR_NUMBER(), ERROR_MESSAGE());
    END CATCH;
    SET @place = @place + 1;
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
WHERE m.text IS NOT NULL AND m.message_id IN ({numbers});

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

-- What the error log says of Service Broker in the last 7 days. The line with a number and the one with its text
-- have one time and one process.
DECLARE @log TABLE (log_date datetime, process_info nvarchar(100), line nvarchar(max));
{read_log}
SELECT 'error_log' AS view_name,
    '"' + REPLACE(@instance_name, '"', '""') + '"' AS instance_name,
    @exported_at AS exported_at,
    CONVERT(varchar(30), l.log_date, 126) AS log_date,
    '"' + REPLACE(LEFT(REPLACE(REPLACE(l.line, NCHAR(13), N' '), NCHAR(10), N' '), 2000), '"', '""') + '"' AS text
FROM (
    SELECT TOP (1000) o.log_date, o.line
    FROM @log AS o
    WHERE o.line LIKE N'%Service Broker%'
        OR o.line LIKE N'%activated proc%'
        OR o.line LIKE N'%query notification dialog%'
        OR EXISTS (
            SELECT 1
            FROM @log AS e
            WHERE e.log_date = o.log_date AND e.process_info = o.process_info
                AND (
                    e.line LIKE N'%: 28[0-9][0-9][0-9],%' OR e.line LIKE N'%: 9[67][0-9][0-9],%'
                    OR e.line LIKE N'%: 84[0-9][0-9],%'
                )
        )
    ORDER BY o.log_date DESC
) AS l;

-- What the session of "sbroute import queries --events" has recorded of messages that were thrown away. A longer
-- event is left out.
DECLARE @events TABLE (event_name nvarchar(60), event_data nvarchar(max), file_name nvarchar(260), file_offset bigint);
BEGIN TRY
    IF EXISTS (SELECT 1 FROM sys.server_event_sessions WHERE name = N'sbroute')
        INSERT INTO @events (event_name, event_data, file_name, file_offset)
        EXEC sys.sp_executesql N'SELECT TOP (1000) e.object_name, e.event_data, e.file_name, e.file_offset
            FROM sys.fn_xe_file_target_read_file(N''sbroute*.xel'', NULL, NULL, NULL) AS e
            WHERE e.object_name IN (N''broker_message_undeliverable'', N''broker_forwarded_message_dropped'')
            ORDER BY e.file_name DESC, e.file_offset DESC';
END TRY
BEGIN CATCH
    INSERT INTO @errors (part, error_number, message) VALUES ('broker_events', ERROR_NUMBER(), ERROR_MESSAGE());
END CATCH;
SELECT 'broker_events' AS view_name,
    '"' + REPLACE(@instance_name, '"', '""') + '"' AS instance_name,
    @exported_at AS exported_at,
    v.event_name AS event_name,
    '"' + REPLACE(REPLACE(REPLACE(CONVERT(nvarchar(3900), v.event_data), NCHAR(13), N' '), NCHAR(10), N' '), '"', '""') + '"' AS event_data
FROM @events AS v
WHERE LEN(v.event_data) <= 3900
ORDER BY v.file_name DESC, v.file_offset DESC;

SELECT 'export_errors' AS view_name,
    '"' + REPLACE(@instance_name, '"', '""') + '"' AS instance_name,
    @exported_at AS exported_at,
    e.part AS part,
    '"' + REPLACE(e.database_name, '"', '""') + '"' AS of_database,
    '"' + REPLACE(REPLACE(REPLACE(LEFT(e.message, 500), NCHAR(13), N' '), NCHAR(10), N' '), '"', '""') + '"' AS message,
    e.error_number AS error_number,
    e.left_out AS left_out
FROM (SELECT 1 AS one) AS one
LEFT JOIN @errors AS e ON 1 = 1;
