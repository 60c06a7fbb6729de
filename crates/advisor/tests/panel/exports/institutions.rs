//! Exports of courts, hospitals, laboratories and schools.

use arrow::array::RecordBatch;

use crate::columns::{
    DAY, START, amounts, choice, codes, export, floats, int32, int64, rising, sentences, serial, shuffled,
    texts, times, uniform, with_nulls, zipf,
};
use crate::exports::{Case, amounts_of, sums};

/// Results of samples, some as bounds.
fn laboratory() -> RecordBatch {
    let samples = 6_000;
    let patient = zipf(samples, 2_500, 0.4, 441);
    let (mut of, mut test) = (Vec::new(), Vec::new());
    for (sample, tests) in uniform(samples, 6, 442).iter().enumerate() {
        for number in 0..=*tests {
            of.push(sample as u64);
            test.push((sample as u64 + number) % 12);
        }
    }
    let rows = of.len();
    let drawn = rising(samples, 300.0, 443);
    let result = uniform(rows, 20_000, 444).into_iter().map(|value| match value % 20 {
        0 => format!("<{}.5", value % 9),
        _ => format!("{}.{}", value / 100, value % 100),
    });
    export(vec![
        ("num_muestra", int64(of.iter().map(|sample| 700_000 + sample * 3))),
        ("nif_paciente", codes("P", &of.iter().map(|sample| patient[*sample as usize]).collect::<Vec<_>>())),
        ("cod_prueba", codes("T", &test)),
        ("resultado", texts(result)),
        ("fec_extraccion", times(of.iter().map(|sample| drawn[*sample as usize]))),
    ])
}

/// Entries of cases that each court numbers by itself.
fn dockets() -> RecordBatch {
    let (courts, cases) = (14u64, 90u64);
    let (mut court, mut case, mut entry) = (Vec::new(), Vec::new(), Vec::new());
    for (at, entries) in uniform((courts * cases) as usize, 30, 461).iter().enumerate() {
        for number in 0..=*entries {
            court.push(at as u64 / cases);
            case.push(at as u64 % cases);
            entry.push(1 + number);
        }
    }
    let rows = court.len();
    export(vec![
        ("court", codes("D", &court)),
        ("case_no", texts(case.iter().map(|case| format!("25-{case:05}")))),
        ("entry_no", int64(entry)),
        ("filed_on", times(rising(rows, 2_000.0, 462))),
        ("docket_text", sentences(rows, 463)),
    ])
}

/// Revisions of documents with the hash of their content.
fn revisions() -> RecordBatch {
    let counts = zipf(6_000, 30, 0.8, 91);
    let (mut document, mut revision) = (Vec::new(), Vec::new());
    for (at, count) in counts.iter().enumerate() {
        for number in 0..=*count {
            document.push(at as u64 * 3 + 100);
            revision.push(number + 1);
        }
    }
    let rows = document.len();
    let digest = |at: usize| {
        let part =
            |seed: u64| (at as u64 + seed).wrapping_mul(0x9E37_79B9_7F4A_7C15).rotate_left(seed as u32);
        format!("{:016x}{:016x}{:016x}{:016x}", part(1), part(17), part(33), part(51))
    };
    export(vec![
        ("doc_id", int64(document)),
        ("rev", int64(revision)),
        ("edited_by", int64(zipf(rows, 400, 0.7, 92).into_iter().map(|n| n + 5_000))),
        ("edited_at", times(rising(rows, 30.0, 93))),
        ("size_bytes", int64(uniform(rows, 90_000, 94))),
        ("sha256", texts((0..rows).map(digest))),
    ])
}

/// Visits of patients, a few of whom are not known.
fn visits() -> RecordBatch {
    let rows = 30_000;
    let patient: Vec<u64> = zipf(rows, 6_000, 0.3, 151).into_iter().map(|n| n * 3 + 7_001).collect();
    let born = patient.iter().map(|patient| START - (patient % 30_000) as i64 * 86_400_000_000);
    let visit = export(vec![
        ("clinic", choice(rows, &["north", "south", "harbour"], 152)),
        ("ticket_no", serial(rows)),
        ("patient_id", with_nulls(&int64(patient.clone()), 0.02, 153)),
        ("date_of_birth", times(born)),
        ("visited_at", times(rising(rows, 600.0, 154))),
        ("charge", amounts(rows, 120.0, 155)),
    ]);
    shuffled(&visit, 156)
}

/// Marks of pupils, with the number that pandas gives to each row.
fn attendance() -> RecordBatch {
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
fn ringings() -> RecordBatch {
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

/// Charges of hospitals for each of a few kinds of treatment, with separators in the numbers.
fn hospital_charges() -> RecordBatch {
    let (hospitals, kinds) = (2_400u64, 30u64);
    let pairs: Vec<(u64, u64)> = (0..kinds)
        .flat_map(|kind| (0..hospitals).map(move |hospital| (hospital, kind)))
        .filter(|(hospital, kind)| (hospital * 7 + kind * 13) % 11 < 4)
        .collect();
    let rows = pairs.len();
    let city = zipf(hospitals as usize, 900, 0.5, 421);
    let discharges = zipf(rows, 3_000, 0.9, 422).into_iter().map(|number| match number + 11 {
        large @ 1_000.. => format!("{},{:03}", large / 1_000, large % 1_000),
        small => small.to_string(),
    });
    export(vec![
        (
            "Definition",
            texts(pairs.iter().map(|(_, kind)| format!("DISORDERS OF GROUP {kind} WITH COMPLICATIONS"))),
        ),
        ("DRG", int64(pairs.iter().map(|(_, kind)| 280 + kind * 3))),
        ("Provider Id", int64(pairs.iter().map(|(hospital, _)| 10_000 + hospital * 17))),
        ("Provider City", codes("CITY", &pairs.iter().map(|(at, _)| city[*at as usize]).collect::<Vec<_>>())),
        ("Total Discharges", texts(discharges)),
        ("Average Payments", floats(rows, 9_000.0, 2_000.0, 423)),
    ])
}

/// Votes by county and precinct; each county numbers its precincts from 1.
fn votes() -> RecordBatch {
    let precincts = |county: u64| 8 + county * 7 % 33;
    let (candidates, modes) = (10_u64, ["absentee", "early", "election day"]);
    let mut rows: Vec<(u64, u64, u64, u64)> = Vec::new();
    for county in 0..48 {
        for precinct in 1..=precincts(county) {
            let choices = (0..candidates).flat_map(|candidate| (0..3).map(move |mode| (candidate, mode)));
            rows.extend(choices.map(|(candidate, mode)| (county, precinct, candidate, mode)));
        }
    }
    let offices = ["governor", "president", "senator"];
    let count = rows.len();
    export(vec![
        ("county_fips", int64(rows.iter().map(|row| 39_001 + 2 * row.0))),
        ("precinct", texts(rows.iter().map(|row| format!("{:03}", row.1)))),
        ("office", texts(rows.iter().map(|row| offices[(row.2 / 4) as usize].to_owned()))),
        ("candidate", codes("C", &rows.iter().map(|row| row.2).collect::<Vec<_>>())),
        ("mode", texts(rows.iter().map(|row| modes[row.3 as usize].to_owned()))),
        ("votes", int64(amounts_of(count, 60, 931))),
    ])
}

/// Stays in hospitals without their patients, hospitals and dates.
fn discharges() -> RecordBatch {
    let rows = 24_000;
    let county = zipf(rows, 9, 0.7, 941);
    export(vec![
        ("hospital_county", codes("County ", &county)),
        ("age_group", choice(rows, &["0 to 17", "18 to 29", "30 to 49", "50 to 69", "70 or older"], 942)),
        ("gender", choice(rows, &["F", "M"], 943)),
        ("length_of_stay", int64(amounts_of(rows, 3, 944))),
        ("admit_type", choice(rows, &["elective", "emergency", "newborn", "urgent"], 945)),
        ("drg_code", int64(zipf(rows, 300, 0.9, 946).into_iter().map(|code| code * 3 + 1))),
        ("total_charges", int64(amounts_of(rows, 9_000, 947))),
    ])
}

/// Visits of members, with times as one database shows them by default.
fn visits_of_members() -> RecordBatch {
    let rows = 30_000;
    let member = zipf(rows, 2_500, 0.4, 901);
    let shown = |minute: u64| {
        let (day, minute) = (minute / 1_440, minute % 1_440);
        let (month, day) = if day < 31 { ("Jan", day + 1) } else { ("Mar", day - 30) };
        let (hour, half) = (minute / 60, if minute < 720 { "AM" } else { "PM" });
        format!("{month} {day:>2} 2026 {:>2}:{:02}{half}", (hour + 11) % 12 + 1, minute % 60)
    };
    export(vec![
        ("visited", texts((0..rows as u64).map(|row| shown(row * 61 * 1_440 / rows as u64)))),
        ("member_id", int64(member.iter().map(|member| member * 3 + 4_000))),
        ("card_no", codes("C", &member)),
        ("club", codes("club", &zipf(rows, 20, 0.6, 902))),
        ("guests", int32(uniform(rows, 3, 903))),
    ])
}

/// Changes of employees: some have two jobs, some two changes on one day.
fn job_changes() -> RecordBatch {
    let mut keys: Vec<(u64, u64, u64, u64)> = Vec::new();
    for employee in 0..3_000_u64 {
        let jobs = 1 + u64::from(employee % 17 == 0);
        for (job, change) in (0..jobs).flat_map(|job| (0..4).map(move |change| (job, change))) {
            // The second job begins with the first.
            let day = (employee * 7_919 + change * 977) % 4_000;
            let same_day = 1 + u64::from((employee + change) % 19 == 0);
            keys.extend((0..same_day).map(|number| (employee, job, day, number)));
        }
    }
    let rows = keys.len();
    let day = |day: u64| START - 4_000 * DAY + day as i64 * DAY;
    export(vec![
        ("EMPLID", codes("", &keys.iter().map(|key| key.0 + 10_000).collect::<Vec<_>>())),
        ("EMPL_RCD", int32(keys.iter().map(|key| key.1))),
        ("EFFDT", times(keys.iter().map(|key| day(key.2)))),
        ("EFFSEQ", int32(keys.iter().map(|key| key.3))),
        ("ACTION", choice(rows, &["HIR", "PAY", "XFR", "TER"], 911)),
        ("JOBCODE", codes("", &zipf(rows, 220, 0.7, 912))),
        ("ANNUAL_RT", amounts(rows, 50_000.0, 913)),
    ])
}

/// Exports of this file, with the answers that experts accept.
pub(super) fn cases() -> Vec<Case> {
    vec![
        case!(by name
            "votes of precincts",
            votes,
            &[&["county_fips", "precinct"]],
            never & ["votes"],
            by & [&["county_fips", "precinct", "candidate", "mode"]],
            "each county numbers its precincts, which have a row for each candidate and mode"
        ),
        case!(by name
            "discharges without patients",
            discharges,
            &[&[]],
            never & [],
            by & [],
            "no column says whose stay it was, and most rows share all that is known"
        ),
        case!(
            "results of a laboratory",
            laboratory,
            &[&["num_muestra"], &["nif_paciente"]],
            never & ["resultado"],
            by & [&["num_muestra", "cod_prueba"], &["nif_paciente", "fec_extraccion", "cod_prueba"]],
            "a result is measured, although it is text"
        ),
        case!(
            "dockets of courts",
            dockets,
            &[&["court", "case_no"], &["case_no"]],
            never & ["docket_text"],
            by & [&["court", "case_no", "entry_no"]],
            "entries are numbered within a case of a court"
        ),
        case!(
            "revisions",
            revisions,
            &[&["doc_id"]],
            never & ["size_bytes", "sha256"],
            by & [&["doc_id", "rev"]],
            "equal contents have equal hashes"
        ),
        case!(
            "visits of patients",
            visits,
            &[&["patient_id"]],
            never & ["charge", "date_of_birth"],
            by & [&["ticket_no"]],
            "the few visits of nobody known need a value, and are no reason to scatter the others"
        ),
        case!(by name
            "marks of pupils",
            attendance,
            &[&["upn"]],
            never & ["Unnamed: 0", "minutes_late"],
            by & [&["upn", "session_date", "period"]],
            "the number of a row in a frame is that of another row tomorrow"
        ),
        case!(
            "rings of birds",
            ringings,
            &[&["ring_no"]],
            never & ["species", "fat", "wing_mm"],
            by & [&["ring_no", "date", "hour"]],
            "a date and a time of day are one time in two columns"
        ),
        case!(by name
            "charges of hospitals",
            hospital_charges,
            &[&["Provider Id"]],
            never & ["Total Discharges", "Average Payments"],
            by & [&["Provider Id", "DRG"], &["Provider Id", "Definition"]],
            "an amount with separators is an amount, and a long label of few kinds a kind"
        ),
        case!(
            "visits of members",
            visits_of_members,
            &[&["member_id"], &["card_no"]],
            never & ["guests"],
            by & [&["visited", "member_id"], &["visited", "card_no"]],
            "a visit is a member at a time, however the time is written"
        ),
        case!(by name
            "changes of jobs",
            job_changes,
            &[&["EMPLID"], &["EMPLID", "EMPL_RCD"]],
            never & ["ANNUAL_RT"],
            by & [&["EMPLID", "EMPL_RCD", "EFFDT", "EFFSEQ"]],
            "numbers that tell changes of one day apart identify them; the code of a job does so by chance"
        ),
    ]
}
