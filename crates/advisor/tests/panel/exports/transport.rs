//! Exports of journeys and shipments.

use arrow::array::RecordBatch;

use crate::columns::{
    SECOND, START, amounts, choice, codes, export, floats, int32, int64, rising, seconds, serial, signed,
    texts, times, uniform, zipf,
};
use crate::exports::{Case, amounts_below_zero};

fn rides() -> RecordBatch {
    let rows = 50_000;
    export(vec![
        ("ride_id", serial(rows)),
        ("driver_id", int64(uniform(rows, 4_000, 1))),
        ("passenger_id", int64(uniform(rows, 20_000, 2))),
        ("pickup_at", times(rising(rows, 5.0, 3))),
        ("distance_m", amounts(rows, 4_000.0, 4)),
        ("fare_cents", amounts(rows, 1_500.0, 5)),
        ("city", choice(rows, &["Berlin", "Hamburg", "Munich", "Cologne"], 6)),
    ])
}

fn flights() -> RecordBatch {
    let rows = 90_000;
    let origin = zipf(rows, 300, 0.8, 1);
    let destination = zipf(rows, 300, 0.8, 2);
    let distance: Vec<u64> =
        origin.iter().zip(&destination).map(|(a, b)| 100 + (a * 7919 + b * 104_729) % 2_500).collect();
    let airport = |codes: &[u64]| {
        texts(codes.iter().map(|c| {
            format!(
                "{}{}{}",
                (b'A' + (c / 26 % 26) as u8) as char,
                (b'A' + (c % 26) as u8) as char,
                (b'A' + (c % 7) as u8) as char
            )
        }))
    };
    export(vec![
        ("date", seconds(rising(rows, 60.0, 3))),
        ("delay", signed(amounts_below_zero(rows, 4))),
        ("distance", int64(distance)),
        ("origin", airport(&origin)),
        ("destination", airport(&destination)),
    ])
}

fn gps() -> RecordBatch {
    let rows = 60_000;
    export(vec![
        ("truck_id", int32(uniform(rows, 2_000, 1))),
        ("ts", times(rising(rows, 0.3, 2))),
        ("lat", floats(rows, 52.0, 0.01, 3)),
        ("lon", floats(rows, 13.0, 0.02, 4)),
        ("speed_kmh", int32(uniform(rows, 130, 5))),
        ("heading", int32(uniform(rows, 360, 6))),
    ])
}

/// Flights between airports with what was measured of them, of which some has many values.
fn flights_with_measures() -> RecordBatch {
    let rows = 40_000;
    let (from, to) = (zipf(rows, 180, 0.7, 491), zipf(rows, 180, 0.7, 492));
    let tail = zipf(rows, 2_400, 0.3, 493);
    let miles = |row: usize| 100 + (from[row] * 7_919 + to[row] * 104_729) % 2_500;
    let noise = uniform(rows, 40, 494);
    let minutes = |row: usize| 30 + miles(row) / 8 + noise[row] / 2;
    export(vec![
        ("flight_date", times((0..rows).map(|row| START + (row / 1_400) as i64 * 86_400_000_000))),
        ("carrier", choice(rows, &["AA", "DL", "UA", "WN", "B6", "AS"], 495)),
        ("tail_num", codes("N", &tail)),
        ("flight_num", int64(zipf(rows, 3_000, 0.4, 496))),
        ("origin", codes("A", &from)),
        ("dest", codes("A", &to)),
        ("dep_delay", signed(uniform(rows, 200, 497).into_iter().map(|delay| delay as i64 - 20))),
        ("air_time", int64((0..rows).map(minutes))),
        ("distance", int64((0..rows).map(miles))),
        ("distance_group", int64((0..rows).map(|row| miles(row) / 250))),
    ])
}

/// Taps of cards on validators, which number them; one in 200 was sent twice.
fn taps() -> RecordBatch {
    let rows = 40_000;
    let tapped = rising(rows, 3.0, 301);
    let validator = uniform(rows, 700, 302);
    let mut counted = vec![0u64; 700];
    let mut sequence = Vec::new();
    for at in &validator {
        counted[*at as usize] += 1;
        sequence.push(40_000 + at * 13 + counted[*at as usize]);
    }
    let sent: Vec<(usize, i64)> = (0..rows)
        .flat_map(|at| if at % 200 == 7 { vec![(at, 1), (at, 95)] } else { vec![(at, 1)] })
        .collect();
    let card = zipf(rows, 9_000, 0.4, 303);
    let of = |values: &[u64]| sent.iter().map(|(at, _)| values[*at]).collect::<Vec<u64>>();
    export(vec![
        ("card_token", codes("T", &of(&card))),
        ("validator_id", codes("V", &of(&validator))),
        ("validator_seq", int64(of(&sequence))),
        ("tapped_at", times(sent.iter().map(|(at, _)| tapped[*at]))),
        ("received_at", times(sent.iter().map(|(at, lag)| tapped[*at] + lag * SECOND + *at as i64 % 997))),
        ("fare", amounts(sent.len(), 2.0, 304)),
    ])
}

/// Bookings whose dates have the name of the month.
fn segments() -> RecordBatch {
    let booking: Vec<u64> =
        (0..9_000u64).flat_map(|booking| vec![booking; 1 + booking as usize % 3]).collect();
    let rows = booking.len();
    let segment = (0..9_000u64).flat_map(|booking| 1..=1 + booking % 3);
    let date = |booking: &u64| {
        format!("{:02}{}26", booking * 7 % 28 + 1, ["Jan", "Feb", "Mar"][*booking as usize % 3])
    };
    export(vec![
        ("rloc", codes("Q", &booking.iter().map(|booking| booking * 31 + 4_096).collect::<Vec<_>>())),
        ("created_dt", texts(booking.iter().map(date))),
        ("seg_no", int64(segment)),
        ("carrier", choice(rows, &["LH", "TP", "KL"], 361)),
        ("pax_cnt", int64(uniform(rows, 4, 362).into_iter().map(|n| n + 1))),
    ])
}

/// Status messages of shipments, which carriers send in interchanges.
fn carrier_messages() -> RecordBatch {
    let sent: Vec<(u64, u64)> =
        (0..4_000u64).flat_map(|sent| (1..=2 + sent % 8).map(move |at| (sent, at))).collect();
    let shipment = uniform(sent.len(), 4_000, 432);
    let clock = |row: &(u64, u64)| format!("{:02}{:02}", row.0 / 170, row.0 * 7 % 60);
    export(vec![
        ("ISA_CTL_NO", int64(sent.iter().map(|row| 900_000_100 + row.0 * 3))),
        ("ST_CTL_NO", texts(sent.iter().map(|row| format!("{:04}", row.1)))),
        ("PRO_NO", int64(shipment.iter().map(|shipment| 410_000_000 + shipment * 11))),
        ("STAT_CD", choice(sent.len(), &["X3", "AF", "X1", "D1", "AG"], 431)),
        ("STAT_DT", int64(sent.iter().map(|row| 20_260_301 + row.0 / 160))),
        ("STAT_TM", texts(sent.iter().map(clock))),
    ])
}

/// Passages of cars through the lanes of car parks: at the entry, the till and the exit.
fn garage_events() -> RecordBatch {
    let rows = 24_000;
    let time = rising(rows, 20.0, 451);
    let ticket: Vec<u64> = (0..rows as u64).map(|at| at / 3 + at % 3 * 40).collect();
    let lane: Vec<u64> = uniform(rows, 48, 452).iter().zip(0..).map(|(lane, at)| lane * 3 + at % 3).collect();
    export(vec![
        ("tkt_no", codes("T", &ticket)),
        ("dev_cd", codes("L", &lane)),
        ("evt_ts", times(time)),
        ("plate_no", codes("M", &ticket.iter().map(|ticket| ticket * 7_919 % 7_000).collect::<Vec<_>>())),
        ("amt_paid", amounts(rows, 4.5, 453)),
    ])
}

/// Scans of parcels from a stream that delivered some of them twice.
fn parcel_scans() -> RecordBatch {
    let rows = 20_000;
    let scans: Vec<usize> = (0..rows).flat_map(|at| vec![at; if at % 60 == 7 { 2 } else { 1 }]).collect();
    let time = rising(rows, 16.0, 491);
    let parcel = uniform(rows, 3_400, 492);
    let kind = |at: &usize| ["label", "pickup", "hub", "delivery"][at % 4].to_owned();
    export(vec![
        (
            "tracking_no",
            codes("JD", &scans.iter().map(|at| parcel[*at] * 97 + 10_000_000).collect::<Vec<_>>()),
        ),
        ("scan_type", texts(scans.iter().map(kind))),
        ("scan_ms", signed(scans.iter().map(|at| time[*at] / 1_000))),
        ("scanner", texts(scans.iter().map(|at| ["api", "hand", "belt"][at * 31 % 3].to_owned()))),
    ])
}

/// Positions of vehicles, with the distance that each has travelled; some stand still.
fn vehicle_positions() -> RecordBatch {
    let rows = 26_000;
    let vehicle = zipf(rows, 330, 0.2, 741);
    let drives = uniform(rows, 10, 742);
    let mut travelled: Vec<u64> = uniform(330, 900_000, 743).into_iter().map(|km| km * 100).collect();
    let distance: Vec<u64> = vehicle
        .iter()
        .zip(drives)
        .map(|(vehicle, drives)| {
            let meter = &mut travelled[*vehicle as usize];
            *meter += if drives == 0 { 0 } else { 200 + drives * 57 };
            *meter
        })
        .collect();
    export(vec![
        ("imei", int64(vehicle.iter().map(|vehicle| 864_106_440_000_000 + vehicle * 7_919_113))),
        ("ts", seconds((0..rows as i64).map(|row| START + row * 3 / 2 * 2 * SECOND))),
        ("counter", int64((0..rows as u64).map(|row| row / 330 % 256))),
        ("lat", floats(rows, 48.0, 0.01, 745)),
        ("lon", floats(rows, 12.0, 0.01, 746)),
        ("speed_kmh", amounts(rows, 40.0, 747)),
        ("heading", int64(uniform(rows, 360, 748))),
        ("odo", int64(distance)),
    ])
}

/// Flights of a month, with the date as text beside the day of the month.
fn flights_of_a_month() -> RecordBatch {
    let (flights, days) = (1_000u64, 28u64);
    let rows = (flights * days) as usize;
    let flight = |row: u64| row % flights;
    let day = |row: u64| 1 + row / flights;
    let airports = ["SLC", "CLE", "DFW", "DCA", "BOS", "JFK", "SEA", "PHX", "DEN", "ATL", "MIA", "ORD"];
    let airport = |number: u64| airports[(number % 12) as usize].to_owned();
    let rows_of = || 0..rows as u64;
    export(vec![
        ("MONTH", int64(rows_of().map(|_| 2))),
        ("DAY_OF_MONTH", int64(rows_of().map(day))),
        ("FL_DATE", texts(rows_of().map(|row| format!("2/{}/2023 12:00:00 AM", day(row))))),
        (
            "CARRIER",
            texts(rows_of().map(|row| ["AA", "UA", "DL", "WN", "B6"][(flight(row) % 5) as usize].to_owned())),
        ),
        ("FL_NUM", int64(rows_of().map(|row| 100 + flight(row) / 10 * 13))),
        ("ORIGIN", texts(rows_of().map(|row| airport(flight(row) / 5)))),
        ("DEST", texts(rows_of().map(|row| airport(flight(row) / 5 + 1 + flight(row) % 7)))),
        ("DEP_DELAY", amounts(rows, 12.0, 751)),
    ])
}

/// Exports of this file, with the answers that experts accept.
pub(super) fn cases() -> Vec<Case> {
    vec![
        case!(
            "rides",
            rides,
            &[&["driver_id"], &["passenger_id"]],
            never & ["distance_m", "fare_cents"],
            by & [&["ride_id"]],
            "rides of a driver or passenger"
        ),
        case!(
            "flights",
            flights,
            &[&["origin", "destination"]],
            never & ["delay"],
            by & [],
            "delay and distance are measures"
        ),
        case!(
            "gps",
            gps,
            &[&["truck_id"]],
            never & ["lat", "lon", "speed_kmh", "heading"],
            by & [&["truck_id", "ts"]],
            "a truck's track"
        ),
        case!(
            "flights with measures",
            flights_with_measures,
            &[
                &["tail_num"],
                &["flight_num"],
                &["carrier", "flight_num"],
                &["origin"],
                &["dest"],
                &["origin", "dest"]
            ],
            never & ["dep_delay", "air_time", "distance", "distance_group"],
            by & [],
            "a distance follows from two airports, however many values it has"
        ),
        case!(by name
            "taps of cards",
            taps,
            &[&["card_token"], &["validator_id"]],
            never & ["received_at", "fare"],
            by & [&["validator_id", "validator_seq"], &["card_token", "tapped_at"]],
            "a tap that is sent again is the same tap"
        ),
        case!(by name
            "messages of carriers",
            carrier_messages,
            &[&["PRO_NO"]],
            never & [],
            by & [&["ISA_CTL_NO", "ST_CTL_NO"]],
            "shipments are followed, not the interchanges that told of them"
        ),
        case!(
            "segments of bookings",
            segments,
            &[&["rloc"]],
            never & ["pax_cnt"],
            by & [&["rloc", "seg_no"]],
            "a date is one however it is written"
        ),
        case!(
            "events of car parks",
            garage_events,
            &[&["tkt_no"], &["tkt_no", "evt_ts"], &["dev_cd", "tkt_no"]],
            never & ["amt_paid"],
            by & [&["tkt_no", "evt_ts"], &["dev_cd", "evt_ts"]],
            "a car may pass a lane again; only the time tells events apart"
        ),
        case!(
            "scans of parcels",
            parcel_scans,
            &[&["tracking_no"]],
            never & ["scanner"],
            by & [&["tracking_no", "scan_ms"]],
            "rows that were sent again say nothing about how often values repeat"
        ),
        case!(
            "positions of vehicles",
            vehicle_positions,
            &[&["imei"]],
            never & ["odo", "heading"],
            by & [&["imei", "ts"]],
            "a distance that grows within each vehicle identifies nothing"
        ),
        case!(by name
            "flights of a month",
            flights_of_a_month,
            &[&["CARRIER", "FL_NUM"], &["FL_NUM"], &["CARRIER", "FL_NUM", "ORIGIN"]],
            never & ["DEP_DELAY", "DAY_OF_MONTH"],
            by & [&["FL_DATE", "CARRIER", "FL_NUM", "ORIGIN"], &["FL_DATE", "CARRIER", "FL_NUM", "DEST"]],
            "the day of the month stands for a date only until the next month"
        ),
    ]
}
