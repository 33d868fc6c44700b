-- Part 1 records what Service Broker does with messages, part 2 reads it for "sbroute import events".
-- Built from the documentation of SQL Server. It needs ALTER ANY EVENT SESSION, and VIEW SERVER STATE to read.

-- Part 1: run it once on each instance. The files go to the folder of SQL Server's error log, 20 of 50 MB at most.
IF EXISTS (SELECT 1 FROM sys.server_event_sessions WHERE name = N'sbroute')
    DROP EVENT SESSION sbroute ON SERVER;
GO
CREATE EVENT SESSION sbroute ON SERVER
ADD EVENT sqlserver.broker_message_classify (ACTION (sqlserver.database_id, sqlserver.database_name)),
ADD EVENT sqlserver.broker_forwarded_message_sent (ACTION (sqlserver.database_id, sqlserver.database_name)),
ADD EVENT sqlserver.broker_forwarded_message_dropped (ACTION (sqlserver.database_id, sqlserver.database_name)),
ADD EVENT sqlserver.broker_message_undeliverable (ACTION (sqlserver.database_id, sqlserver.database_name)),
ADD EVENT sqlserver.broker_remote_message_acknowledgement (ACTION (sqlserver.database_id, sqlserver.database_name))
ADD TARGET package0.event_file (SET filename = N'sbroute.xel', max_file_size = (50), max_rollover_files = (20))
WITH (MAX_MEMORY = 4 MB, EVENT_RETENTION_MODE = ALLOW_SINGLE_EVENT_LOSS, STARTUP_STATE = ON);
GO
ALTER EVENT SESSION sbroute ON SERVER STATE = START;
GO

-- Part 2: read what was recorded, one row an event. With sqlcmd into a file, each row one line of JSON:
--   sqlcmd -S SERVER -E -d master -y 0 -f 65001 -i read_events.sql -o SERVER.jsonl
-- With SSMS run it and save the grid by "Save Results As" (.csv, with headers).
-- The same events may be read and imported again and again: each is kept once.
SET NOCOUNT ON;
SELECT (
    SELECT CONVERT(nvarchar(256), SERVERPROPERTY('ServerName')) AS instance_name,
        e.object_name, e.event_data, e.file_name, e.file_offset
    FOR JSON PATH, WITHOUT_ARRAY_WRAPPER
)
FROM sys.fn_xe_file_target_read_file(N'sbroute*.xel', NULL, NULL, NULL) AS e;
