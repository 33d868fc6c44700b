-- A change to try on the demo's tables: sbroute diff --with-script conf/examples/labels.sql --instance depot-east
USE Shipping;
GO
-- Labels are printed by another server from now on. The service is //larkfield.example/Shipping/Labels.
ALTER ROUTE Labels WITH
    SERVICE_NAME = N'//larkfield.example/Shipping/labels',
    ADDRESS = N'TCP://hq-labels.larkfield.example:4022';
GO
