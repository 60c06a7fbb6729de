//! Exports of what devices measure.

use arrow::array::{ArrayRef, RecordBatch};

use crate::columns::{
    SECOND, START, amounts, choice, codes, export, floats, int32, int64, rising, signed, texts, times,
    uniform, zipf,
};
use crate::exports::{Case, sums};

fn epoch_readings() -> RecordBatch {
    let (rows, meters) = (40_000, 2_000);
    let at = rising(rows, 4.0, 421).into_iter().map(|at| (at / 1_000_000) as u64);
    export(vec![
        ("taken", int64(at)),
        ("meter_id", int64((0..rows as u64).map(|row| 500_000 + row % meters * 3))),
        ("reading", floats(rows, 230.0, 0.1, 422)),
    ])
}

fn sensors() -> RecordBatch {
    let rows = 60_000;
    let devices = 500;
    let at: Vec<i64> = (0..rows).map(|row| START + (row / devices) as i64 * 60_000_000).collect();
    export(vec![
        ("device_id", texts((0..rows).map(|row| format!("dev-{:05}", row % devices)))),
        ("measured_at", times(at)),
        ("temperature", floats(rows, 20.0, 0.2, 1)),
        ("humidity", floats(rows, 50.0, 0.3, 2)),
        ("battery", int32(uniform(rows, 101, 3))),
    ])
}

fn few_sensors() -> RecordBatch {
    let rows = 40_000;
    export(vec![
        ("sensor", int32((0..rows as u64).map(|row| row % 8))),
        ("at", times((0..rows as i64).map(|row| START + row / 8 * 1_000_000))),
        ("value", floats(rows, 3.0, 0.5, 1)),
    ])
}

fn wide() -> RecordBatch {
    let rows = 8_000;
    let mut columns: Vec<(String, ArrayRef)> = vec![
        ("vehicle_id".to_owned(), codes("V", &uniform(rows, 2_500, 1))),
        ("recorded_at".to_owned(), times(rising(rows, 5.0, 2))),
    ];
    columns.extend((0..98).map(|at| (format!("signal_{at:02}"), floats(rows, 10.0, 0.5, 100 + at))));
    columns.extend((0..98).map(|at| (format!("state_{at:02}"), int32(uniform(rows, 6, 300 + at)))));
    export(columns.iter().map(|(name, array)| (name.as_str(), array.clone())).collect())
}

/// Means of 10 minutes of 140 turbines, all at the same times.
fn turbines() -> RecordBatch {
    let (turbines, times_of_each) = (140, 200);
    let rows = turbines * times_of_each;
    let turbine: Vec<u64> = (0..rows as u64).map(|row| row % turbines as u64).collect();
    let at = (0..rows).map(|row| START + (row / turbines) as i64 * 600_000_000);
    export(vec![
        ("turbine_id", codes("WT", &turbine)),
        ("measured_at", times(at)),
        ("wind_speed", floats(rows, 8.0, 0.4, 421)),
        ("power_kw", floats(rows, 900.0, 0.6, 422)),
        ("op_state", choice(rows, &["run", "idle", "fault"], 423)),
    ])
}

/// One sensor.
fn grid_frequency() -> RecordBatch {
    let rows = 40_000;
    export(vec![
        ("at", times((0..rows).map(|row| START + row as i64 * 1_000_000))),
        ("hertz", floats(rows, 50.0, 0.001, 471)),
        ("quality", choice(rows, &["good", "fair", "bad"], 472)),
    ])
}

/// Inverters, which are numbered in each plant, at local times.
fn inverters() -> RecordBatch {
    let (plants, steps) = (9u64, 96u64);
    let units = |plant: u64| 20 + plant * 3;
    let rows: Vec<(u64, u64, u64)> = (0..steps)
        .flat_map(|step| {
            (0..plants).flat_map(move |plant| (0..units(plant)).map(move |unit| (step, plant, unit)))
        })
        .collect();
    let time = |step: u64| format!("{:02}.07.2026 {:02}:{:02}", step / 48 + 1, step / 2 % 24, step % 2 * 30);
    export(vec![
        ("local_time", texts(rows.iter().map(|(step, _, _)| time(*step)))),
        ("plant_code", texts(rows.iter().map(|(_, plant, _)| format!("P{plant}")))),
        ("inverter_no", texts(rows.iter().map(|(_, _, unit)| format!("INV{unit:02}")))),
        ("ac_power_kw", floats(rows.len(), 40.0, 12.0, 231)),
        ("dc_voltage", floats(rows.len(), 600.0, 20.0, 232)),
    ])
}

/// One detector, a row a minute.
fn detector() -> RecordBatch {
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

/// Engines that run until they fail, with the cycles that each has left.
fn engines() -> RecordBatch {
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

/// One household, a row a minute, with its date and its time of day in columns of their own.
fn household() -> RecordBatch {
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

/// Readings of air conditioners, with counters that add up over the life of a unit.
fn rooftop_units() -> RecordBatch {
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

/// Counts of four counters of a road, each in both directions, by the hour.
fn road_counts() -> RecordBatch {
    let rows = 32_000_u64;
    export(vec![
        ("counter", codes("A7-", &(0..rows).map(|row| row / 2 % 4).collect::<Vec<_>>())),
        ("direction", texts((0..rows).map(|row| if row % 2 == 0 { "N" } else { "S" }.to_owned()))),
        ("hour", times((0..rows).map(|row| START + (row / 8) as i64 * 3_600 * SECOND))),
        ("cars", amounts(rows as usize, 300.0, 921)),
    ])
}

/// Exports of this file, with the answers that experts accept.
pub(super) fn cases() -> Vec<Case> {
    vec![
        case!(
            "sensors",
            sensors,
            &[&["device_id"]],
            never & ["temperature", "humidity", "battery"],
            by & [&["device_id", "measured_at"]],
            "one device's readings stay together"
        ),
        case!(
            "few sensors",
            few_sensors,
            &[&["sensor", "at"], &["sensor"]],
            never & ["value"],
            by & [&["sensor", "at"]],
            "eight sensors cannot fill 16 partitions: a second column is needed, or fewer partitions"
        ),
        case!(
            "wide telemetry",
            wide,
            &[&["vehicle_id"]],
            never & [],
            by & [&["vehicle_id", "recorded_at"]],
            "two hundred signals of a vehicle"
        ),
        case!(
            "readings with epochs",
            epoch_readings,
            &[&["meter_id"]],
            never & ["reading"],
            by & [&["meter_id", "taken"]],
            "seconds since 1970 are a time"
        ),
        case!(
            "means of 140 turbines",
            turbines,
            &[&["turbine_id"]],
            never & ["wind_speed", "power_kw", "op_state"],
            by & [&["turbine_id", "measured_at"]],
            "few values are uneven by chance, and a second column costs every read of a turbine"
        ),
        case!(
            "one sensor",
            grid_frequency,
            &[&[]],
            never & ["hertz"],
            by & [&["at"]],
            "nothing but a time: whatever is hashed is a makeshift"
        ),
        case!(
            "inverters of plants",
            inverters,
            &[&["plant_code", "inverter_no"]],
            never & ["ac_power_kw", "dc_voltage"],
            by & [&["plant_code", "inverter_no", "local_time"]],
            "the number of an inverter is one of its plant"
        ),
        case!(
            "engines that fail",
            engines,
            &[&["unit_number"]],
            never & ["RUL", "sensor_1", "sensor_2"],
            by & [&["unit_number", "time_in_cycles"]],
            "what remains is computed from what has passed"
        ),
        case!(
            "one household",
            household,
            &[&[], &["Date", "Time"]],
            never & ["Global_active_power", "Voltage", "Sub_metering_1"],
            by & [&["Date", "Time"]],
            "a single series has nothing to be placed by but its time"
        ),
        case!(
            "one detector",
            detector,
            &[&[], &["at"]],
            never & ["counts", "pressure_hpa", "voltage", "quality"],
            by & [&["at"]],
            "a single series has nothing to be placed by but its time"
        ),
        case!(
            "readings of air conditioners",
            rooftop_units,
            &[&["unit_sn"], &["unit_sn", "rec_ts"]],
            never & ["cmp1_starts", "cmp2_starts", "fan_starts", "fan_run_hrs", "supply_temp"],
            by & [&["unit_sn", "rec_ts"]],
            "what adds up within a device is measured, and numbers no rows"
        ),
        case!(
            "counters of a road",
            road_counts,
            &[&["counter", "hour"], &["counter", "direction", "hour"], &[]],
            never & ["cars"],
            by & [&["counter", "direction", "hour"]],
            "eight values fill no 16 partitions: an answer that does not say so is no answer"
        ),
    ]
}
