//! Hints that the name of a column gives about its role.
//!
//! Names are weaker evidence than values: they are matched by whole words ("count" is not in
//! "account"), and add at most [`WEIGHT`] to a score.

mod abbreviations;
mod hint;
mod hints;
mod numbers;
mod things;
mod times;
mod unspaced;
mod words;

pub(crate) use crate::evaluate::roles::names::abbreviations::hints_behind_prefix;
pub(crate) use crate::evaluate::roles::names::hint::Hint;
pub(in crate::evaluate::roles) use crate::evaluate::roles::names::hints::{WEIGHT, hint, hints};
pub(crate) use crate::evaluate::roles::names::numbers::is_bare_number;
pub(in crate::evaluate::roles) use crate::evaluate::roles::names::numbers::{
    counted, counts_things, denotes_base_position, denotes_count, denotes_number, denotes_sequence_of_bases,
    is_amount_of_thing, is_in_unit, is_row_number, without_numbers,
};
pub(crate) use crate::evaluate::roles::names::things::{
    denotes_action, denotes_events, denotes_log_partition, denotes_offset, denotes_port_of_connection,
    denotes_side, denotes_staff, denotes_tenant, denotes_topic, is_bare_id, is_derived, is_label,
};
pub(in crate::evaluate::roles) use crate::evaluate::roles::names::things::{
    denotes_address, denotes_allele, denotes_author, denotes_block, denotes_code, denotes_deletion,
    denotes_operation, denotes_page_view, denotes_process, denotes_span, denotes_stored, denotes_talk,
    denotes_thread, denotes_trace, denotes_transaction, has_end, has_several_words, is_contact, is_first_of,
    is_id_of_record, is_of_rows, is_whole, noun, recurs,
};
pub(crate) use crate::evaluate::roles::names::times::{
    Lateness, denotes_birth, denotes_change, denotes_creation, denotes_creator, denotes_log, denotes_period,
    denotes_receipt, is_later, lateness,
};
pub(in crate::evaluate::roles) use crate::evaluate::roles::names::times::{
    denotes_before, denotes_bound, denotes_calendar, denotes_commit, denotes_julian_date, denotes_load,
    denotes_part_of_day, denotes_sequence, denotes_step, denotes_transmission, denotes_year, is_duration,
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_differ_in_a_number_are_counted_if_they_are_many() {
        let names = ["uid", "cat1", "cat2", "cat10", "cat7", "card1", "card2", "7", "catalog"];
        let expected = [false, true, true, true, true, false, false, false, false];
        assert_eq!(counted(names.into_iter()), expected);
    }

    #[test]
    fn words_count_as_a_whole_and_the_last_decides() {
        for (name, expected) in [
            ("user_id", Some(Hint::Identifier)),
            ("userId", Some(Hint::Identifier)),
            ("l_orderkey", Some(Hint::Identifier)),
            ("account", Some(Hint::Entity)),
            ("discount", Some(Hint::Measure)),
            ("event_type", Some(Hint::Dimension)),
            ("user_count", Some(Hint::Measure)),
            ("created_at", Some(Hint::Time)),
            ("l_linenumber", Some(Hint::Line)),
            ("c_comment", Some(Hint::Text)),
            ("durationMs", Some(Hint::Measure)),
            ("signal_dBm", Some(Hint::Measure)),
            ("db", None),
            ("Kostenstelle", None),
            ("preisliste", None),
            ("Listenpreis", Some(Hint::Measure)),
            ("Verbrauch kWh", Some(Hint::Measure)),
            ("num_items", Some(Hint::Measure)),
            ("emails_sent", Some(Hint::Measure)),
            ("played", Some(Hint::Measure)),
            ("sent_by", None),
            ("is_returned", Some(Hint::Dimension)),
            ("was_returned", None),
            ("date_received", Some(Hint::Time)),
            ("device_used", Some(Hint::Entity)),
            ("payment_method_used", Some(Hint::Dimension)),
            ("QT_VOTOS", Some(Hint::Measure)),
            ("NR_SECAO", Some(Hint::Identifier)),
            ("nr_rooms", Some(Hint::Measure)),
            ("nr_line", Some(Hint::Line)),
            ("qt_date", Some(Hint::Time)),
            ("Gemeinde", Some(Hint::Dimension)),
            ("seatNum", Some(Hint::Identifier)),
            ("num_factura", Some(Hint::Identifier)),
            ("no_carte", Some(Hint::Identifier)),
            ("numero_cuenta", Some(Hint::Identifier)),
            ("no_rooms", None),
            ("no_show", None),
            ("case_no", Some(Hint::Identifier)),
            ("entry_seq_no", Some(Hint::Line)),
            ("line_number", Some(Hint::Line)),
            ("grid", None),
            ("pricepaid", Some(Hint::Measure)),
            ("is_valid", Some(Hint::Dimension)),
            ("content_hash", Some(Hint::Attribute)),
            ("tx_hash", Some(Hint::Identifier)),
            ("sha256", Some(Hint::Attribute)),
            ("distance_to_roads", Some(Hint::Measure)),
            ("to", Some(Hint::Entity)),
            ("X Coordinate (State Plane)", Some(Hint::Measure)),
            ("Amount [customer currency]", Some(Hint::Measure)),
            ("(id)", Some(Hint::Identifier)),
            ("xyz", None),
            ("c1", None),
            ("id.orig_h", None),
            ("payload.user_id", Some(Hint::Identifier)),
            ("src_port", Some(Hint::Attribute)),
            ("airport", None),
            ("geo_dest", Some(Hint::Dimension)),
            ("geo_id", Some(Hint::Identifier)),
        ] {
            assert_eq!(hint(name), expected, "{name}");
        }
    }

    #[test]
    fn numbers_in_names_are_left_out_of_their_families() {
        for (name, family) in
            [("px0_b12", "px#_b#"), ("V1", "V#"), ("2024", "#"), ("plain", "plain"), ("", "")]
        {
            assert_eq!(without_numbers(name), family);
        }
        for name in ["PointNumber", "entry_no", "seq", "lineNum"] {
            assert!(denotes_number(name), "{name}");
        }
        for name in ["number_of_points", "shop", ""] {
            assert!(!denotes_number(name), "{name}");
        }
        assert!(is_row_number("rownames") && is_row_number("Unnamed: 0") && !is_row_number("row"));
    }

    #[test]
    fn how_far_ahead_a_forecast_looks_is_a_period() {
        for name in ["lead_h", "forecast_hours", "forecast_horizon", "season", "time_code"] {
            assert!(denotes_period(name), "{name}");
        }
        for name in ["lead_id", "lead", "horizon", "forecast", "forecast_min"] {
            assert!(!denotes_period(name), "{name}");
        }
    }

    #[test]
    fn keys_of_calendars_and_numbers_of_blocks_are_times_by_their_names() {
        for name in ["ss_sold_date_sk", "DateKey", "day_id", "dim_time_sk", "monthid"] {
            assert!(denotes_calendar(name), "{name}");
        }
        for name in ["date", "update_id", "holiday_kind", "id", "customer_sk", "runtime", ""] {
            assert!(!denotes_calendar(name), "{name}");
        }
        for name in ["block_number", "blockNumber", "block", "block_height"] {
            assert!(denotes_block(name), "{name}");
        }
        for name in ["block_hash", "blocked", "number", "height", "block_size", ""] {
            assert!(!denotes_block(name), "{name}");
        }
    }

    #[test]
    fn amounts_of_things_are_told_from_numbers_of_things() {
        for name in ["massa_ledig_voertuig", "saldo_cuenta", "poids_colis"] {
            assert!(is_amount_of_thing(name), "{name}");
        }
        for name in [
            "gas_meter",
            "power_station",
            "cost_account",
            "balance_account",
            "saldo",
            "voertuig_massa",
            "peso_vehiculo_id",
            "",
        ] {
            assert!(!is_amount_of_thing(name), "{name}");
        }
    }

    #[test]
    fn people_and_devices_come_back_and_their_properties_do_not() {
        for name in ["user_id", "customer", "o_custkey", "card_no", "payload.deviceId", "user_pseudo_id"] {
            assert!(recurs(name), "{name}");
        }
        for name in ["user_count", "order_id", "card_type", "id", "hosted", "payment_intent", ""] {
            assert!(!recurs(name), "{name}");
        }
    }

    #[test]
    fn those_who_handle_something_are_told_from_customers_and_devices() {
        for name in
            ["cashier_id", "CASHIER_NO", "sales_rep", "agentId", "AgentKey", "approved_by", "operator"]
        {
            assert!(denotes_staff(name), "{name}");
        }
        for name in ["user_agent", "customer_id", "created_by", "sent_by", "agent_version", "report", ""] {
            assert!(!denotes_staff(name), "{name}");
        }
    }

    #[test]
    fn what_happened_is_told_from_its_circumstances() {
        for name in ["event_name", "action", "EventType", "metric"] {
            assert!(denotes_action(name), "{name}");
        }
        for name in ["result", "status", "auth_method", "viewport_w", ""] {
            assert!(!denotes_action(name), "{name}");
        }
    }

    #[test]
    fn sides_of_games_are_told_from_parties_of_payments() {
        for name in ["white_id", "home_team", "AwayTeamId", "winner_name", "player1", "team_b", "player_2_id"]
        {
            assert!(denotes_side(name), "{name}");
        }
        for name in ["from_account", "player_id", "team", "payer", "whitelist", "homepage", "sender_1", ""] {
            assert!(!denotes_side(name), "{name}");
        }
    }

    #[test]
    fn wholes_are_named_with_and_without_the_word_for_an_identifier() {
        for name in ["conversation_id", "orderId", "l_orderkey", "SESSION", "chat_room_id", "accountid"] {
            assert!(is_whole(name), "{name}");
        }
        for name in ["order_date", "user_id", "session_length", "id", "", "reorder", "sender_id"] {
            assert!(!is_whole(name), "{name}");
        }
    }

    #[test]
    fn the_id_of_the_rows_is_named_like_the_export() {
        for (column, export) in [
            ("trade_id", "stock_trades"),
            ("messageId", "mailbox-messages"),
            ("id", "x"),
            ("entry_id", "entries_2026"),
        ] {
            assert!(is_of_rows(column, export), "{column} {export}");
        }
        for (column, export) in [
            ("order_id", "order_items"),
            ("user_id", "events"),
            ("trades", "trades"),
            ("uid", "plays"),
            ("", ""),
        ] {
            assert!(!is_of_rows(column, export), "{column} {export}");
        }
    }

    #[test]
    fn numbers_of_rows_are_told_from_those_of_things() {
        for name in ["n", "seq", "Row_Number", "NR", "index", "Unnamed: 0", "seq_no"] {
            assert!(is_bare_number(name), "{name}");
        }
        for name in ["ITEM_NO", "visit_id", "id", "order_number", "c1", "invoice_nr", "serial_id"] {
            assert!(!is_bare_number(name), "{name}");
        }
    }

    #[test]
    fn names_of_contacts_units_creators_and_lines_are_told_from_others() {
        for (is_one, names, others) in [
            (
                is_contact as fn(&str) -> bool,
                vec!["email", "Mailing Address Telephone Number", "fax_no", "user.phone"],
                vec!["phone_model", "number", "mail_id", "telephone_exchange_code"],
            ),
            (
                is_in_unit,
                vec!["dwell_days", "wait_minutes", "powerKw"],
                vec!["days", "line_no", "seq", "weekday"],
            ),
            (denotes_commit, vec!["tx_id", "xid", "source.txId"], vec!["tax_id", "taxi", "text"]),
            (denotes_talk, vec!["channel_id", "ThreadId", "room"], vec!["roommate", "chatty"]),
            (denotes_author, vec!["author_id", "senderId"], vec!["authority", "authorized_by"]),
            (
                denotes_change,
                vec!["LastModifiedDate", "LASTMODIFIEDDATE", "Updated On", "updated_at"],
                vec!["created_at", "Date", "last_seen"],
            ),
            (denotes_creator, vec!["CREATED_BY", "create_uid"], vec!["created_at", "updated_by", "creation"]),
            (
                denotes_transaction,
                vec!["txHash", "from", "gas_used", "transaction_index"],
                vec!["lot", "borough", "block", "zipcode"],
            ),
            (
                is_id_of_record,
                vec!["AppsFlyer ID", "policy_no"],
                vec!["id", "request_id", "FLOW_ID", "event_uuid", "name"],
            ),
            (
                denotes_port_of_connection,
                vec!["srcport", "id.resp_port", "dport", "local-port"],
                vec!["port", "seaport", "airport", "support", "destination_port_name"],
            ),
            (
                denotes_sequence,
                vec!["seqno", "event.seq", "sequence_number", "kafka_offset"],
                vec!["seq_id_hash", "offset_minutes", "consequence", "number"],
            ),
            (
                denotes_page_view,
                vec!["page_view_id", "pageViewId", "pageview_uuid"],
                vec!["view_id", "page_id", "page_views"],
            ),
            (
                denotes_operation,
                vec!["__op", "operation", "change_type", "_row_op"],
                vec!["op_count", "operation_id", "type", "shop"],
            ),
            (denotes_deletion, vec!["__deleted", "isDeleted"], vec!["delete_marker_id", "undeletable"]),
            (denotes_allele, vec!["REF", "alt_allele"], vec!["altitude", "refund"]),
            (denotes_offset, vec!["offset", "kafka_offset"], vec!["offset_minutes"]),
            (denotes_base_position, vec!["pos", "chromStart", "End_Position"], vec!["ref", "dispos"]),
            (denotes_sequence_of_bases, vec!["CHROM", "chr", "seqname"], vec!["chronic", "sequence"]),
            (
                |name| hint(name) == Some(Hint::Attribute),
                vec!["card_last4", "last_4_digits", "panMasked", "first6"],
                vec!["last_name_id", "card_id"],
            ),
            (
                |name| hint(name) == Some(Hint::Measure),
                vec!["lotarea", "bldgarea", "time-taken", "CostInBillingCurrency"],
                vec!["tarea", "area", "community_area", "currency"],
            ),
        ] {
            assert!(names.iter().all(|name| is_one(name)), "{names:?}");
            assert!(!others.iter().any(|name| is_one(name)), "{others:?}");
        }
        for (name, expected) in [
            ("session_line_num", Some("session")),
            ("session_id", Some("session")),
            ("orderLine", Some("order")),
            ("line_no", None),
            ("seq", None),
            ("", None),
        ] {
            assert_eq!(noun(name).as_deref(), expected, "{name}");
        }
        for (name, other, is_first) in [
            ("first_update_id", "final_update_id", Some(true)),
            ("lastUpdateId", "firstUpdateId", Some(false)),
            ("start_station_id", "end_station_id", Some(true)),
            ("first_name", "last_id", None),
            ("first", "last", None),
            ("update_id", "final_update_id", None),
        ] {
            assert_eq!(is_first_of(name, other), is_first, "{name} {other}");
        }
        assert!(has_several_words("orderLine") && !has_several_words("order") && !has_several_words(""));
    }

    #[test]
    fn times_of_receipt_and_of_the_end_are_later() {
        for name in ["received_at", "updatedAt", "END_TIME", "kafka_ingested"] {
            assert!(is_later(name), "{name}");
        }
        for name in ["measured_at", "created", "event_time", "sent_at", "started_at"] {
            assert!(!is_later(name), "{name}");
        }
        // Less late than the receipt of the record.
        assert!(is_later("recorded_at") && lateness("recorded_at") < lateness("ingested_at"));
    }

    #[test]
    fn the_last_telling_word_decides() {
        assert_eq!(hint("event_type"), Some(Hint::Dimension));
        assert_eq!(hint("user_id"), Some(Hint::Identifier));
        assert_eq!(hint("userCount"), Some(Hint::Measure));
        assert_eq!(hint("time_hour"), Some(Hint::Dimension));
        assert_eq!(hint("grid"), None);
    }
}
