//! Exports with traps: rows that were sent twice, a single series, things that are registered, and
//! columns whose names alone tell what they are.

use arrow::array::RecordBatch;

use crate::columns::{
    START, amounts, choice, codes, export, floats, int64, rising, seconds_with_fractions, serial, signed,
    sorted, texts, times, uniform, uuids, zipf,
};

const SECOND: i64 = 1_000_000;

/// Sums of several even numbers below `values`, which crowd around their mean.
fn sums(rows: usize, values: u64, part_count: u64, seed: u64) -> Vec<u64> {
    let parts: Vec<Vec<u64>> =
        (0..part_count).map(|part| uniform(rows, values, seed + 1_000 * part)).collect();
    (0..rows).map(|at| parts.iter().map(|part| part[at]).sum()).collect()
}

/// Taps of cards on validators, which number them; one in 200 was sent twice.
pub(crate) fn taps() -> RecordBatch {
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
    let values_of = |values: &[u64]| sent.iter().map(|(at, _)| values[*at]).collect::<Vec<u64>>();
    export(vec![
        ("card_token", codes("T", &values_of(&card))),
        ("validator_id", codes("V", &values_of(&validator))),
        ("validator_seq", int64(values_of(&sequence))),
        ("tapped_at", times(sent.iter().map(|(at, _)| tapped[*at]))),
        ("received_at", times(sent.iter().map(|(at, lag)| tapped[*at] + lag * SECOND + *at as i64 % 997))),
        ("fare", amounts(sent.len(), 2.0, 304)),
    ])
}

/// Names that hosts look up, at seconds with fractions; some connections ask for a name twice.
pub(crate) fn lookups() -> RecordBatch {
    let rows = 30_000;
    let connection: Vec<u64> = uniform(rows, 20_000, 321)
        .into_iter()
        .scan(0, |last, n| {
            if n % 3 > 0 {
                *last += 1;
            }
            Some(*last)
        })
        .collect();
    let asked_at = rising(rows, 2.0, 322);
    export(vec![
        ("ts", seconds_with_fractions(&asked_at)),
        ("uid", codes("C", &connection.iter().map(|n| n * 7_919 % 1_000_003).collect::<Vec<_>>())),
        ("client", codes("10.1.", &connection.iter().map(|n| n * 31 % 900).collect::<Vec<_>>())),
        ("query", codes("host", &connection.iter().map(|n| n * n % 2_000).collect::<Vec<_>>())),
        ("qtype", choice(rows, &["A", "AAAA", "PTR"], 323)),
        ("rtt", floats(rows, 0.03, 0.004, 324)),
    ])
}

/// One detector, a row a minute.
pub(crate) fn detector() -> RecordBatch {
    let rows = 20_000;
    export(vec![
        ("station", texts((0..rows).map(|_| "JUNG".to_owned()))),
        ("at", times((0..rows as i64).map(|minute| START + minute * 60 * SECOND))),
        ("counts", int64(sums(rows, 120, 4, 311).into_iter().map(|n| n + 9_000))),
        ("pressure_hpa", floats(rows, 650.0, 4.0, 312)),
        ("voltage", int64(uniform(rows, 12, 313).into_iter().map(|n| n + 2_740))),
        ("quality", choice(rows, &["0", "0", "0", "1"], 314)),
    ])
}

/// Elements of buildings with the type that each is of.
pub(crate) fn elements() -> RecordBatch {
    let rows = 24_000;
    let kind = zipf(rows, 500, 0.3, 321);
    let name = |(at, kind): (usize, &u64)| format!("Wall-{kind}:{}", 300_000 + at * 3);
    let elements = export(vec![
        ("GlobalId", uuids(rows, 322)),
        ("Name", texts(kind.iter().enumerate().map(name))),
        ("TypeId", codes("F-", &kind)),
        ("TypeName", texts(kind.iter().map(|kind| format!("Type {kind}")))),
        ("Storey", choice(rows, &["UG", "EG", "OG1", "OG2"], 323)),
        ("AreaM2", floats(rows, 12.0, 5.0, 324)),
        (
            "LastModified",
            times(uniform(rows, 30_000_000, 325).into_iter().map(|s| START + s as i64 * SECOND)),
        ),
    ]);
    sorted(&elements, "GlobalId")
}

/// Licences that hosts check out; the handles are used again, and one user has most of the rows.
pub(crate) fn checkouts() -> RecordBatch {
    let rows = 30_000;
    let host = zipf(rows, 600, 0.3, 331);
    let user =
        host.iter().map(|host| if host % 5 < 3 { "svc_batch".to_owned() } else { format!("u{}", host % 83) });
    export(vec![
        ("server", choice(rows, &["lic01", "lic02", "lic03"], 332)),
        ("username", texts(user)),
        ("hostname", codes("farm", &host)),
        ("handle", int64((0..rows as u64).map(|at| 101 + at * 7 % 4_000))),
        ("out_ts", times(rising(rows, 20.0, 333))),
        ("duration_s", int64(zipf(rows, 9_000, 0.6, 334))),
    ])
}

/// Swipes at doors: the card number 0 is that of the doors themselves.
pub(crate) fn swipes() -> RecordBatch {
    let rows = 30_000;
    let card: Vec<u64> = zipf(rows, 2_500, 0.3, 341);
    let code = |at: usize| if at.is_multiple_of(40) { "DF" } else { ["AG", "AG", "AG", "AD"][at * 7 % 4] };
    let is_of_door = |at: usize| at.is_multiple_of(40);
    let number = |(at, card): (usize, &u64)| if is_of_door(at) { 0 } else { 300_000 + card * 17 };
    let employee =
        |(at, card): (usize, &u64)| if is_of_door(at) { "DOOR".to_owned() } else { format!("E{card:05}") };
    export(vec![
        ("EVT_CD", texts((0..rows).map(|at| code(at).to_owned()))),
        ("CARD_NO", int64(card.iter().enumerate().map(number))),
        ("EMP_ID", texts(card.iter().enumerate().map(employee))),
        ("RDR_ID", int64(zipf(rows, 150, 0.9, 342).into_iter().map(|n| n + 5_000))),
        ("EVT_TS", times(rising(rows, 5.0, 343))),
        ("SEQ", serial(rows)),
    ])
}

/// Requests between services, counted by minute.
pub(crate) fn edges() -> RecordBatch {
    let (services, minutes) = (22u64, 90u64);
    let edges: Vec<(u64, u64)> =
        (0..services).flat_map(|a| (1..=4).map(move |b| (a, (a * 5 + b * 3) % services))).collect();
    let rows: Vec<(u64, u64, u64)> =
        (0..minutes).flat_map(|minute| edges.iter().map(move |(a, b)| (minute, *a, *b))).collect();
    export(vec![
        ("minute", times(rows.iter().map(|(minute, ..)| START + *minute as i64 * 60 * SECOND))),
        ("source_service", codes("svc-", &rows.iter().map(|row| row.1).collect::<Vec<_>>())),
        ("destination_service", codes("svc-", &rows.iter().map(|row| row.2).collect::<Vec<_>>())),
        ("requests", int64(sums(rows.len(), 40, 3, 351).into_iter().map(|n| n * n * n / 900))),
        ("latency_ms", floats(rows.len(), 20.0, 6.0, 352)),
    ])
}

/// Bookings whose dates have the name of the month.
pub(crate) fn segments() -> RecordBatch {
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

/// Marks of pupils, with the number that pandas gives to each row.
pub(crate) fn attendance() -> RecordBatch {
    let (pupils, days, periods) = (400u64, 10u64, 6u64);
    let marks: Vec<(u64, u64, u64)> = (0..days)
        .flat_map(|day| {
            (0..periods).flat_map(move |period| (0..pupils).map(move |pupil| (day, period, pupil)))
        })
        .collect();
    let rows = marks.len();
    export(vec![
        ("Unnamed: 0", int64(0..rows as u64)),
        ("upn", codes("A8", &marks.iter().map(|mark| mark.2 * 7_919 + 310_000).collect::<Vec<_>>())),
        ("session_date", texts(marks.iter().map(|mark| format!("2026-03-{:02}", mark.0 + 2)))),
        ("period", int64(marks.iter().map(|mark| mark.1 + 1))),
        ("mark", choice(rows, &["/", "/", "/", "N", "L"], 371)),
        ("minutes_late", int64(zipf(rows, 30, 1.6, 372))),
    ])
}

/// Rings of birds, some of which were read several times on one day.
pub(crate) fn ringings() -> RecordBatch {
    let ring: Vec<u64> = (0..9_000u64).flat_map(|ring| vec![ring; 1 + ring as usize % 3]).collect();
    let rows = ring.len();
    let clock = |at: usize| format!("{:02}:{:02}", 4 + at * 5 % 15, at * 17 % 60);
    export(vec![
        ("ring_no", codes("KZ", &ring.iter().map(|ring| ring * 3 + 10_000).collect::<Vec<_>>())),
        ("date", texts(ring.iter().map(|ring| format!("2026-{:02}-{:02}", ring % 9 + 1, ring % 28 + 1)))),
        ("hour", texts((0..rows).map(clock))),
        ("species", choice(rows, &["PARMAJ", "TURMER", "ERIRUB", "SYLATR"], 381)),
        ("fat", choice(rows, &["0", "1", "2", "3"], 382)),
        ("wing_mm", int64(sums(rows, 12, 4, 383).into_iter().map(|n| n + 50))),
    ])
}

/// Requests to a city, with dates as Americans write them and places in feet.
pub(crate) fn service_requests() -> RecordBatch {
    let rows = 20_000;
    let created = |minute: i64| {
        let (day, hour) = (minute / 1_440, minute / 60 % 24);
        let (hour, half) = ((hour + 11) % 12 + 1, if hour < 12 { "AM" } else { "PM" });
        format!("{:02}/{:02}/2026 {hour:02}:{:02}:07 {half}", day / 28 + 1, day % 28 + 1, minute % 60)
    };
    let place = zipf(rows, 7_000, 0.5, 391);
    export(vec![
        ("Unique Key", int64((0..rows as u64).map(|at| 57_900_000 - at * 3 - at % 2))),
        ("Created Date", texts((0..rows as i64).map(|at| created(at * 5)))),
        ("Agency", choice(rows, &["NYPD", "HPD", "DSNY", "DOT"], 392)),
        ("Incident Zip", int64(place.iter().map(|place| 10_001 + place % 180))),
        ("X Coordinate (State Plane)", int64(place.iter().map(|place| 913_000 + place * 7_919 % 150_000))),
        ("Y Coordinate (State Plane)", int64(place.iter().map(|place| 121_000 + place * 6_841 % 150_000))),
    ])
}

/// Sessions of a database that were active when it was sampled, every ten seconds.
pub(crate) fn active_sessions() -> RecordBatch {
    let active: Vec<(u64, u64)> = (0..4_000u64)
        .flat_map(|sample| (0..3 + sample % 9).map(move |at| (sample, (sample * 31 + at * 171) % 1_200)))
        .collect();
    let at = |sample: u64| {
        let seconds = sample * 10;
        format!("18-MAR-26 {:02}.{:02}.{:02}", 6 + seconds / 3_600, seconds / 60 % 60, seconds % 60)
    };
    export(vec![
        ("SAMPLE_ID", int64(active.iter().map(|row| 81_230_110 + row.0 * 10))),
        ("SAMPLE_TIME", texts(active.iter().map(|row| at(row.0)))),
        ("SESSION_ID", int64(active.iter().map(|row| 20 + row.1))),
        ("WAIT_CLASS", choice(active.len(), &["CPU", "User I/O", "Network"], 402)),
        ("TIME_WAITED", int64(zipf(active.len(), 9_000, 0.7, 403))),
    ])
}

/// Engines that run until they fail, with the cycles that each has left.
pub(crate) fn engines() -> RecordBatch {
    let cycles: Vec<(u64, u64, u64)> = (1..=260u64)
        .flat_map(|unit| {
            let last = 120 + unit * 37 % 150;
            (1..=last).map(move |cycle| (unit, cycle, last - cycle))
        })
        .collect();
    export(vec![
        ("unit_number", int64(cycles.iter().map(|row| row.0))),
        ("time_in_cycles", int64(cycles.iter().map(|row| row.1))),
        ("sensor_1", floats(cycles.len(), 355.0, 8.0, 411)),
        ("sensor_2", floats(cycles.len(), 441.0, 9.0, 412)),
        ("RUL", int64(cycles.iter().map(|row| row.2))),
    ])
}

/// Security logs of computers, which number their records.
pub(crate) fn security_log() -> RecordBatch {
    let rows = 30_000;
    let computer = zipf(rows, 700, 0.5, 421);
    let mut records = vec![0u64; 700];
    let record: Vec<u64> = computer
        .iter()
        .map(|at| {
            records[*at as usize] += 1;
            at * 211 + 90_000 + records[*at as usize]
        })
        .collect();
    export(vec![
        ("System.TimeCreated", times(rising(rows, 2.0, 422))),
        ("System.EventID", choice(rows, &["4624", "4688", "4634", "4672"], 423)),
        ("System.EventRecordID", int64(record)),
        ("System.Execution.ProcessID", int64(uniform(rows, 3, 424).into_iter().map(|n| 680 + n * 12))),
        ("System.Execution.ThreadID", int64(uniform(rows, 2_000, 425).into_iter().map(|n| n * 4 + 100))),
        ("System.Computer", texts(computer.iter().map(|at| format!("SRV{at:03}.corp.local")))),
    ])
}

/// Status messages of shipments, which carriers send in interchanges.
pub(crate) fn carrier_messages() -> RecordBatch {
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

/// One household, a row a minute, with its date and its time of day in columns of their own.
pub(crate) fn household() -> RecordBatch {
    let rows = 20_000;
    let fractions =
        |values: Vec<u64>| texts(values.into_iter().map(|n| format!("{}.{:03}", n / 1_000, n % 1_000)));
    export(vec![
        ("Date", texts((0..rows).map(|minute| format!("{}/1/2026", minute / 1_440 + 1)))),
        ("Time", texts((0..rows).map(|minute| format!("{:02}:{:02}:00", minute / 60 % 24, minute % 60)))),
        ("Global_active_power", fractions(zipf(rows, 6_000, 0.5, 441))),
        ("Voltage", fractions(sums(rows, 6_000, 3, 442).into_iter().map(|n| n + 230_000).collect())),
        ("Sub_metering_1", int64(zipf(rows, 40, 1.5, 443))),
    ])
}

/// Passages of cars through the lanes of car parks: at the entry, the till and the exit.
pub(crate) fn garage_events() -> RecordBatch {
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

/// Readings of air conditioners, with counters that add up over the life of a unit.
pub(crate) fn rooftop_units() -> RecordBatch {
    let (units, samples) = (300u64, 40u64);
    let each: Vec<(u64, u64)> =
        (0..samples).flat_map(|sample| (0..units).map(move |unit| (unit, sample))).collect();
    let counter = |step: u64, salt: u64| {
        int64(each.iter().map(move |(unit, sample)| (unit * 7_919 + salt) % 40_000 + sample * step))
    };
    let time = each.iter().map(|(unit, sample)| 1_767_225_600 + (sample * 300 + unit) as i64);
    export(vec![
        ("unit_sn", codes("RTU", &each.iter().map(|(unit, _)| unit * 31 + 1_000).collect::<Vec<_>>())),
        ("rec_ts", signed(time)),
        ("cmp1_starts", counter(1, 11)),
        ("cmp2_starts", counter(1, 5_003)),
        ("fan_starts", counter(2, 17_011)),
        ("fan_run_hrs", counter(1, 23_003)),
        ("supply_temp", floats(each.len(), 14.0, 2.0, 461)),
    ])
}

/// Prices of shops by day: the address of a page stands for a product in a shop.
pub(crate) fn shop_prices() -> RecordBatch {
    let (products, shops, days) = (900u64, 6u64, 5u64);
    let each: Vec<(u64, u64, u64)> = (0..days)
        .flat_map(|day| (0..products).flat_map(move |sku| (0..shops).map(move |shop| (day, sku, shop))))
        .collect();
    let page = |row: &(u64, u64, u64)| {
        format!(
            "https://shop{}.example/p/{:08x}",
            row.2,
            (row.1 * 6 + row.2).wrapping_mul(2_654_435_761) as u32
        )
    };
    export(vec![
        ("scrape_dt", texts(each.iter().map(|row| format!("2026-03-{:02}", row.0 + 1)))),
        ("our_sku", codes("SKU", &each.iter().map(|row| row.1 * 13 + 10_000).collect::<Vec<_>>())),
        ("shop", texts(each.iter().map(|row| format!("shop{}", row.2)))),
        ("product_url", texts(each.iter().map(page))),
        ("price", amounts(each.len(), 60.0, 471)),
    ])
}

/// Impressions of advertisements, with features that have numbers for names and say no more than
/// the campaign, and times since the first row.
pub(crate) fn featured_impressions() -> RecordBatch {
    let rows = 30_000;
    let campaign = zipf(rows, 640, 0.5, 481);
    let user = zipf(rows, 11_000, 0.3, 482);
    let feature = |values: u64, salt: u64| {
        int64(
            campaign
                .iter()
                .map(move |at| at.wrapping_mul(2_654_435_761).wrapping_add(salt) % 30_000_000 / values),
        )
    };
    export(vec![
        (
            "timestamp",
            signed(rising(rows, 4.0, 483).into_iter().map(|micros| micros / 1_000_000 - 1_767_225_600)),
        ),
        ("uid", int64(user.iter().map(|user| user * 2_711 % 30_000_000))),
        ("campaign", int64(campaign.iter().map(|at| at * 46_337 % 32_000_000))),
        ("cost", floats(rows, 0.001, 0.0002, 484)),
        ("cat1", feature(1, 7)),
        ("cat2", feature(1, 19)),
        ("cat3", feature(1, 31)),
        ("cat4", feature(1, 43)),
        ("cat5", feature(1, 57)),
    ])
}

/// Scans of parcels from a stream that delivered some of them twice.
pub(crate) fn parcel_scans() -> RecordBatch {
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
