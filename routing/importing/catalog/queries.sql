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

INSERT INTO @views VALUES (4, N'SELECT ''transmission_queue'' AS view_name,
    ''"'' + REPLACE(@instance_name, ''"'', ''""'') + ''"'' AS instance_name,
    ''"'' + REPLACE({name}, ''"'', ''""'') + ''"'' AS database_name,
    @exported_at AS exported_at,
    v.conversation_handle AS conversation_handle,
    ''"'' + REPLACE(v.to_service_name COLLATE Latin1_General_BIN, ''"'', ''""'') + ''"'' AS to_service_name,
    ''"'' + REPLACE(v.to_broker_instance COLLATE Latin1_General_BIN, ''"'', ''""'') + ''"'' AS to_broker_instance,
    ''"'' + REPLACE(v.from_service_name COLLATE Latin1_General_BIN, ''"'', ''""'') + ''"'' AS from_service_name,
    CONVERT(varchar(30), v.enqueue_time, 126) AS enqueue_time,
    v.message_sequence_number AS message_sequence_number,
    ''"'' + REPLACE(LEFT(v.transmission_status, 3900) COLLATE Latin1_General_BIN, ''"'', ''""'') + ''"'' AS transmission_status
FROM (SELECT 1 AS one) AS one LEFT JOIN {db}.sys.transmission_queue AS v ON 1 = 1');

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
    EXEC sys.sp_executesql @sql, N'@instance_name nvarchar(256), @exported_at varchar(40)',
        @instance_name, @exported_at;
    SET @number = @number + 1;
END;
