:CONNECT HUB
-- The forwarder, as it was set up. Nobody has exported it: this script is all that is known of HUB.
USE master;
GO
CREATE ENDPOINT BrokerEndpoint
    STATE = STARTED
    AS TCP (LISTENER_PORT = 4022)
    FOR SERVICE_BROKER (AUTHENTICATION = WINDOWS, MESSAGE_FORWARDING = ENABLED);
GO
USE msdb;
GO
CREATE ROUTE [Stock] WITH SERVICE_NAME = N'//stock', ADDRESS = N'TCP://stock.example:4022';
CREATE ROUTE [Orders] WITH SERVICE_NAME = N'//orders', ADDRESS = N'TCP://shop.example:4022';
-- Billing is run by others.
CREATE ROUTE [Billing] WITH SERVICE_NAME = N'//billing', ADDRESS = N'TCP://billing.example:4022';
GO
