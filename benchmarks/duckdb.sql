-- The comparators' subset of the rules: views messages, dialogs, routes, databases, services and instances → resolved_routes.
WITH ranked AS (
    SELECT
        instance_name, database_name AS scope, remote_service_name AS service, broker_instance AS broker,
        row_number() OVER (
            PARTITION BY instance_name, database_name, remote_service_name, broker_instance
            ORDER BY CASE WHEN mirror_address IS NOT NULL THEN 1 WHEN address = 'LOCAL' THEN 2 ELSE 3 END, name
        ) AS rank,
        {'route_name': name, 'address': address, 'mirror_address': mirror_address} AS route
    FROM routes
),
best AS (SELECT * FROM ranked WHERE rank = 1),
named AS (
    SELECT
        instance_name, scope, service,
        any_value(route) FILTER (WHERE broker IS NULL) AS by_service,
        list(broker ORDER BY broker) FILTER (WHERE broker IS NOT NULL) AS ids
    FROM best
    WHERE service IS NOT NULL
    GROUP BY ALL
),
by_id AS (SELECT instance_name, scope, service, broker, route FROM best WHERE service IS NOT NULL AND broker IS NOT NULL),
by_any AS (SELECT instance_name, scope, route FROM best WHERE service IS NULL AND broker IS NULL),
held AS (
    SELECT
        s.instance_name, s.name AS service,
        list(s.database_name ORDER BY s.database_name) AS holders,
        list(d.service_broker_guid ORDER BY s.database_name) AS holder_ids
    FROM services AS s
    JOIN databases AS d ON d.instance_name = s.instance_name AND d.name = s.database_name
    GROUP BY ALL
),
known AS (
    SELECT
        i.instance_name, any_value(i.is_message_forwarding_enabled) AS forwards,
        list(d.service_broker_guid) AS own_ids
    FROM instances AS i
    LEFT JOIN databases AS d ON d.instance_name = i.instance_name
    GROUP BY ALL
),
bound AS (
    SELECT
        m.*,
        coalesce(m.database_name, 'msdb') AS scope,
        coalesce(
            m.to_broker_instance,
            CASE WHEN d.acknowledged_at <= m.enqueue_time THEN d.acknowledged_broker_instance END,
            d.far_broker_instance
        ) AS bound
    FROM messages AS m
    LEFT JOIN dialogs AS d
        ON d.instance_name = m.instance_name AND d.database_name = m.database_name
        AND d.conversation_id = m.conversation_id AND d.is_initiator = m.is_initiator
),
picked AS (
    SELECT
        b.*, n.by_service,
        CASE
            WHEN b.bound IS NOT NULL THEN b.bound
            WHEN n.by_service IS NULL AND n.ids IS NOT NULL
            THEN n.ids[1 + ((dialog_hash(b.conversation_id) % len(n.ids)) + len(n.ids)) % len(n.ids)]
        END AS broker
    FROM bound AS b
    LEFT JOIN named AS n ON n.instance_name = b.instance_name AND n.scope = b.scope AND n.service = b.to_service_name
),
matched AS (
    SELECT
        p.*,
        CASE
            WHEN r.route IS NOT NULL AND p.bound IS NOT NULL THEN 1
            WHEN p.by_service IS NOT NULL THEN 2
            WHEN r.route IS NOT NULL THEN 3
            WHEN a.route IS NOT NULL THEN 5
            ELSE 7
        END AS step,
        CASE step WHEN 1 THEN r.route WHEN 2 THEN p.by_service WHEN 3 THEN r.route WHEN 5 THEN a.route END AS route
    FROM picked AS p
    LEFT JOIN by_id AS r
        ON r.instance_name = p.instance_name AND r.scope = p.scope AND r.service = p.to_service_name
        AND r.broker = p.broker
    LEFT JOIN by_any AS a ON a.instance_name = p.instance_name AND a.scope = p.scope
),
located AS (
    SELECT
        m.*, k.forwards,
        m.database_name IS NULL AS from_network,
        coalesce(m.route.address = 'LOCAL', false) AS is_local,
        coalesce(m.hops_remaining <= 0, false) AS no_hops,
        m.broker IS NOT NULL AND NOT list_contains(k.own_ids, m.broker) AS elsewhere,
        CASE
            WHEN m.broker IS NOT NULL THEN h.holders[list_position(h.holder_ids, m.broker)]
            WHEN list_contains(h.holders, m.database_name) THEN m.database_name
            ELSE h.holders[1]
        END AS holder
    FROM matched AS m
    LEFT JOIN held AS h ON h.instance_name = m.instance_name AND h.service = m.to_service_name
    JOIN known AS k ON k.instance_name = m.instance_name
)
SELECT
    message_id, conversation_id, is_initiator, message_sequence_number, enqueue_time::TIMESTAMPTZ AS enqueue_time,
    instance_name, database_name, to_service_name, to_broker_instance,
    enqueue_time::TIMESTAMPTZ AS decided_at,
    broker AS broker_instance,
    CASE
        WHEN route IS NULL THEN 'DELAYED'
        WHEN is_local AND holder IS NOT NULL THEN 'DELIVERED'
        WHEN is_local AND from_network THEN 'DROPPED'
        WHEN is_local THEN 'DELAYED'
        WHEN NOT from_network THEN 'SENT'
        WHEN NOT forwards OR no_hops THEN 'DROPPED'
        ELSE 'FORWARDED'
    END AS outcome,
    CASE
        WHEN route IS NULL THEN 'NO_ROUTE'
        WHEN is_local AND holder IS NOT NULL THEN 'LOCAL_SERVICE'
        WHEN is_local AND elsewhere THEN 'BROKER_INSTANCE_NOT_FOUND'
        WHEN is_local THEN 'SERVICE_NOT_FOUND'
        WHEN from_network AND NOT forwards THEN 'FORWARDING_DISABLED'
        WHEN from_network AND no_hops THEN 'HOP_LIMIT'
        WHEN route.mirror_address IS NOT NULL THEN 'MIRROR_ADDRESS'
        ELSE 'NETWORK_ADDRESS'
    END AS reason,
    step::INTEGER AS matching_step,
    route.route_name AS route_name,
    CASE WHEN NOT is_local OR holder IS NOT NULL THEN route.address END AS address,
    route.mirror_address AS mirror_address,
    CASE WHEN is_local THEN holder END AS destination_database,
    NULL::STRUCT(route_name VARCHAR, address VARCHAR, mirror_address VARCHAR)[] AS alternative_routes,
    NULL::VARCHAR AS rerouted_from,
    'duckdb' AS run_id,
    1::INTEGER AS attempt
FROM located
