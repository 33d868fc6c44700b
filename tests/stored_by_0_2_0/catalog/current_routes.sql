CREATE VIEW stored_by_0_2_0.current_routes (
  message_id,
  conversation_id,
  is_initiator,
  message_sequence_number,
  enqueue_time,
  instance_name,
  database_name,
  to_service_name,
  to_broker_instance,
  decided_at,
  broker_instance,
  outcome,
  reason,
  matching_step,
  route_name,
  address,
  mirror_address,
  destination_database,
  alternative_routes,
  rerouted_from,
  run_id,
  attempt)
WITH SCHEMA COMPENSATION
AS SELECT r.* FROM (SELECT * FROM `stored_by_0_2_0`.`resolved_routes` VERSION AS OF 1) AS r LEFT JOIN (SELECT instance_name, message_id, max(attempt) AS last_attempt FROM (SELECT * FROM `stored_by_0_2_0`.`resolved_routes` VERSION AS OF 1) WHERE attempt > 1 GROUP BY instance_name, message_id) AS l ON r.instance_name = l.instance_name AND r.message_id = l.message_id WHERE r.attempt = coalesce(l.last_attempt, r.attempt)

