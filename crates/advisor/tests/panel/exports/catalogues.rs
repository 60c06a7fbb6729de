//! Exports of users and the things of a catalogue that they act on, of tenants, and of clocks that
//! count from an unknown moment.

use arrow::array::RecordBatch;

use crate::columns::{
    choice, codes, export, floats, int32, int64, rising, texts, times, uniform, with_nulls, zipf,
};
use crate::exports::{Case, by_group};

/// Attempts of learners at a few exercises.
fn attempts_at_exercises() -> RecordBatch {
    let rows = 20_000;
    let exercise = uniform(rows, 800, 951);
    export(vec![
        ("attempt_id", int64((0..rows as u64).map(|row| 41_000_003 + row * 3))),
        ("learner_id", codes("lrn_", &zipf(rows, 2_600, 0.55, 952))),
        ("exercise_id", codes("ex", &exercise)),
        ("course", codes("course", &by_group(&exercise, 12, 953))),
        ("exercise_type", codes("kind", &by_group(&exercise, 4, 954))),
        ("answered_at", times(rising(rows, 30.0, 955))),
        ("correct", choice(rows, &["true", "false"], 956)),
        ("response_ms", int32(zipf(rows, 9_000, 0.8, 957).into_iter().map(|millis| millis + 300))),
    ])
}

/// Applications for jobs, each with the file that the candidate sent.
fn applications_for_jobs() -> RecordBatch {
    let rows = 16_000;
    // Nobody applies for a job twice.
    let job: Vec<u64> = (0..rows as u64).map(|row| row * 13 % 1_400).collect();
    let candidate: Vec<u64> = (0..rows as u64).map(|row| row * 7 % 5_903).collect();
    let file = uniform(rows, 1 << 60, 961);
    export(vec![
        ("job_id", codes("job-", &job)),
        ("candidate_id", codes("cand-", &candidate)),
        ("applied_at", times(rising(rows, 45.0, 962))),
        ("stage", choice(rows, &["applied", "screen", "interview", "offer", "rejected"], 963)),
        ("match_score", floats(rows, 0.5, 0.3, 964)),
        ("cv_file", texts(file.iter().map(|file| format!("cv/{file:016x}")))),
    ])
}

/// Invoices of organizations, one of them a giant, each with codes of its own customers.
fn invoices_of_organizations() -> RecordBatch {
    let rows = 18_000;
    let small = zipf(rows, 700, 0.5, 971);
    let is_giant = uniform(rows, 100, 972);
    let org: Vec<u64> =
        small.iter().zip(&is_giant).map(|(org, draw)| if *draw < 45 { 0 } else { org + 1 }).collect();
    let mut next = vec![0u64; 702];
    let number: Vec<u64> = org
        .iter()
        .map(|org| {
            next[*org as usize] += 1;
            next[*org as usize]
        })
        .collect();
    export(vec![
        ("org_id", codes("org_", &org)),
        ("invoice_no", int32(number)),
        ("customer_ref", codes("cust-", &zipf(rows, 2_500, 0.6, 973))),
        ("created_at", times(rising(rows, 60.0, 974))),
        ("net_amount", floats(rows, 180.0, 1.0, 975)),
        ("state", choice(rows, &["open", "paid", "overdue", "void"], 976)),
    ])
}

/// Impressions in seconds since the beginning of the collection.
fn impressions_of_a_collection() -> RecordBatch {
    let rows = 24_000;
    let since = uniform(rows, 90_000, 981);
    export(vec![
        ("timestamp", int64((0..rows as u64).map(|row| row * 97 + row % 13))),
        ("uid", int64(zipf(rows, 6_500, 0.4, 982).into_iter().map(|user| 11_000_000 + user * 1_733))),
        (
            "campaign",
            int64(zipf(rows, 280, 0.7, 983).into_iter().map(|campaign| 10_341_000 + campaign * 977)),
        ),
        ("click", int32(uniform(rows, 2, 984))),
        ("cost", floats(rows, 0.0004, 1.0, 985)),
        ("time_since_last_click", int64(since)),
        ("cat1", int64(uniform(rows, 9, 986).into_iter().map(|category| 5_824_000 + category * 31_013))),
        ("cat3", int64(zipf(rows, 1_400, 0.6, 987).into_iter().map(|category| 138_000 + category * 7_121))),
    ])
}

/// Mentions of events in articles, of which most are mentioned once.
fn mentions_in_articles() -> RecordBatch {
    let rows = 15_000;
    let article = uniform(rows, 14_000, 991);
    export(vec![
        ("GlobalEventID", int64((0..rows as u64).map(|row| 1_136_000_000 + row))),
        ("Actor1Code", with_nulls(&codes("ACT", &zipf(rows, 16, 0.6, 992)), 0.2, 993)),
        ("EventCode", codes("0", &zipf(rows, 14, 0.7, 994))),
        ("NumMentions", int32(zipf(rows, 60, 1.1, 995).into_iter().map(|mentions| mentions + 1))),
        ("AvgTone", floats(rows, 2.0, 0.5, 996)),
        ("DateAdded", times(rising(rows, 5.0, 997))),
        (
            "SourceURL",
            texts(
                article.iter().map(|article| format!("https://news{}.example/{article:x}-war", article % 40)),
            ),
        ),
    ])
}

/// Exports of this file, with the answers that experts accept.
pub(super) fn cases() -> Vec<Case> {
    vec![
        case!(by name
            "attempts at exercises",
            attempts_at_exercises,
            &[&["learner_id"], &["attempt_id"], &["learner_id", "attempt_id"], &["learner_id", "answered_at"]],
            never & ["response_ms", "correct", "course"],
            by & [&["attempt_id"]],
            "attempts are read by learner, whatever the exercise determines"
        ),
        case!(by name
            "applications for jobs",
            applications_for_jobs,
            &[&["job_id"], &["candidate_id"], &["job_id", "candidate_id"]],
            never & ["cv_file", "match_score", "stage"],
            by & [&["job_id", "candidate_id"]],
            "a candidate applies for a job once; where the file is stored is no key"
        ),
        case!(by name
            "invoices of organizations",
            invoices_of_organizations,
            &[&["org_id", "invoice_no"], &["org_id", "customer_ref"]],
            never & ["net_amount", "state"],
            by & [&["org_id", "invoice_no"]],
            "one organization has 45 % of the rows, and each has its own customer 17"
        ),
        case!(by name
            "impressions of a collection",
            impressions_of_a_collection,
            &[&["uid"], &["uid", "campaign"], &["uid", "timestamp"]],
            never & ["cost", "click", "cat3", "time_since_last_click"],
            by & [&["uid", "timestamp"]],
            "a user at a time, although the time counts from an unknown moment"
        ),
        case!(by name
            "mentions in articles",
            mentions_in_articles,
            &[&["GlobalEventID"]],
            never & ["SourceURL", "AvgTone", "NumMentions"],
            by & [&["GlobalEventID"]],
            "the event; an article with one row or two is where it comes from"
        ),
    ]
}
