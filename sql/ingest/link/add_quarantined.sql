INSERT INTO quarantined VALUES ($event_id, $byte_offset, $byte_count, $is_lost, $reason, $excerpt)
