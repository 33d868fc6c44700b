CREATE VIEW stored_by_0_3_0.current_routes (
  message_id COMMENT 'as read',
  conversation_id COMMENT 'in lower case',
  is_initiator COMMENT 'as read',
  message_sequence_number COMMENT 'as read',
  enqueue_time COMMENT 'as read',
  instance_name COMMENT 'as read',
  database_name COMMENT 'as read. Null means from the network',
  to_service_name COMMENT 'as read',
  to_broker_instance COMMENT 'without blanks and braces, A to Z in lower case. Null if none was named',
  decided_at COMMENT 'the time of the decision',
  broker_instance COMMENT 'the message\'s, the dialog\'s or the picked broker instance. Null means open',
  outcome COMMENT 'DELIVERED, SENT, FORWARDED, DELAYED or DROPPED',
  reason COMMENT 'one of the reasons',
  matching_step COMMENT '0 for a reply, else step 1 to 7 of the rule book. Null for DIALOG_EXPIRED and SCOPE_BROKER_DISABLED',
  route_name COMMENT 'the chosen route, also of a message that stays or is dropped. Null if no route took part (steps 0, 4, 6, 7 or none)',
  address COMMENT 'the route\'s address. For a TRANSPORT route the address in the service name. LOCAL for step 6. Null without a usable tier and for steps 0, 4 and 7',
  mirror_address COMMENT 'the route\'s mirror address',
  destination_database COMMENT 'the receiving database. Only for DELIVERED',
  alternative_routes COMMENT 'other routes of the tier, by name, which the transport may use. Null without any, and for LOCAL',
  rerouted_from COMMENT 'the first route, if its address was this instance and the message was routed again through msdb',
  run_id COMMENT 'the run that wrote the row',
  attempt COMMENT '1. In incremental mode 2, 3 … for changed decisions. routing.current_routes gives the last row of each message')
WITH SCHEMA COMPENSATION
AS SELECT r.* FROM (SELECT * FROM `stored_by_0_3_0`.`resolved_routes` VERSION AS OF 1) AS r LEFT JOIN (SELECT instance_name, message_id, max(attempt) AS last_attempt FROM (SELECT * FROM `stored_by_0_3_0`.`resolved_routes` VERSION AS OF 1) WHERE attempt > 1 GROUP BY instance_name, message_id) AS l ON r.instance_name = l.instance_name AND r.message_id = l.message_id WHERE r.attempt = coalesce(l.last_attempt, r.attempt)

