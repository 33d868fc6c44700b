USE Orders
GO
ALTER ROUTE Old WITH ADDRESS = 'TCP://new.example:4022'
CREATE ROUTE Billing WITH SERVICE_NAME = '//billing', ADDRESS = 'TCP://billing.example:4022'
