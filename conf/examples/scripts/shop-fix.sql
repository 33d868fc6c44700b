:CONNECT SHOP
-- What an administrator wrote when the queue of Orders was found stuck.
USE Orders;
GO
ALTER ROUTE ToBilling WITH SERVICE_NAME = N'//billing';
GO
