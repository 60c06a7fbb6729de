//! Exports of what people do together: messages, games, music and code.

use arrow::array::RecordBatch;

use crate::columns::{
    SECOND, START, amounts, choice, codes, export, flags, int32, int64, rising, seconds, sentences, serial,
    texts, times, uniform, uuids, zipf,
};
use crate::exports::{Case, amounts_of, hexadecimal, lines};

fn numbered_moves() -> RecordBatch {
    let (games, _) = lines(700, 80, 501);
    let mut next = std::collections::HashMap::new();
    let plies: Vec<u64> = games
        .iter()
        .map(|game| {
            let ply: &mut u64 = next.entry(*game).or_insert(0);
            *ply += 1;
            *ply
        })
        .collect();
    let rows = games.len();
    export(vec![
        ("game_id", codes("g", &games)),
        ("ply", int32(plies.iter().copied())),
        ("move_no", int32(plies.iter().map(|ply| ply.div_ceil(2)))),
        ("color", texts(plies.iter().map(|ply| if ply % 2 == 1 { "w" } else { "b" }.to_owned()))),
        ("uci", codes("m", &zipf(rows, 1_800, 0.8, 502))),
        ("clock_s", int32(amounts_of(rows, 200, 503))),
    ])
}

fn chat() -> RecordBatch {
    let rows = 50_000;
    export(vec![
        ("message_id", uuids(rows, 1)),
        ("conversation_id", int64(zipf(rows, 8_000, 0.5, 2).into_iter().map(|v| v + 1_000))),
        ("sender_id", int64(zipf(rows, 15_000, 0.5, 3))),
        ("sent_at", times(rising(rows, 3.0, 4))),
        ("body", sentences(rows, 5)),
    ])
}

fn calls() -> RecordBatch {
    let rows = 50_000;
    export(vec![
        ("caller", int64(uniform(rows, 8_000, 1).into_iter().map(|v| 491_510_000_000 + v * 137))),
        ("callee", int64(uniform(rows, 30_000, 2).into_iter().map(|v| 491_510_000_000 + v * 137))),
        ("started_at", seconds(rising(rows, 2.0, 3))),
        ("duration_s", amounts(rows, 90.0, 4)),
        ("cell", int32(uniform(rows, 700, 5))),
    ])
}

/// Ten players of each match, each with another hero, in slots with a gap between the teams.
fn heroes_of_matches() -> RecordBatch {
    let (matches, rows) = (4_000u64, 40_000);
    let fame = zipf(rows, 5_000, 0.6, 581);
    let player = |row: usize| (fame[row] * 10 + row as u64 % 10) * 37;
    let hero = |row: u64| (row / 10 * 11 + row % 10 * 7) % 30;
    let all = || 0..rows as u64;
    export(vec![
        ("match_id", int64(all().map(|row| 7_100_000 + row / 10 * 3))),
        ("player_id", int64((0..rows).map(player))),
        ("player_slot", int32(all().map(|row| if row % 10 < 5 { row % 10 } else { 123 + row % 10 }))),
        ("hero", codes("hero_", &all().map(hero).collect::<Vec<_>>())),
        ("games_played", int32(amounts_of(rows, 40, 582))),
        ("kills", int32(uniform(rows, 25, 583))),
        ("start_time", seconds(all().map(|row| START + (row / 10) as i64 * 1_900 * SECOND / matches as i64))),
    ])
}

fn game_scores() -> RecordBatch {
    let rows = 50_000;
    export(vec![
        ("match_id", int64((0..rows as u64).map(|row| row / 10 + 5_000))),
        (
            "player_id",
            int64((0..).zip(uniform(rows, 1_200, 1)).map(|(row, v): (u64, u64)| row % 10 * 1_200 + v)),
        ),
        ("score", int32(uniform(rows, 5_000, 2))),
        ("kills", int32(uniform(rows, 30, 3))),
        ("played_at", seconds((0..rows as i64).map(|row| START + row / 10 * 40_000_000))),
    ])
}

fn followers() -> RecordBatch {
    let rows = 50_000;
    let from: Vec<u64> = (0..rows as u64).map(|row| row / 10).collect();
    export(vec![
        ("follower_id", int64(from)),
        ("followee_id", int64((0..rows as u64).map(|row| (row / 10 * 31 + row % 10 * 977 + 13) % 9_000))),
        ("since", times(uniform(rows, 90_000_000, 2).into_iter().map(|v| START + v as i64 * 1_000))),
    ])
}

fn git_events() -> RecordBatch {
    let rows = 40_000;
    export(vec![
        ("id", int64((0..rows as u64).map(|row| 20_000_000_000 + row * 3))),
        ("type", choice(rows, &["PushEvent", "IssueEvent", "WatchEvent", "ForkEvent"], 1)),
        ("actor_id", int64(zipf(rows, 9_000, 0.4, 2))),
        ("repo_id", int64(zipf(rows, 4_000, 0.6, 3))),
        ("created_at", seconds((0..rows as i64).map(|row| START + row * 1_000_000))),
        ("public", flags(rows, 4)),
    ])
}

fn playback() -> RecordBatch {
    let rows = 40_000;
    export(vec![
        ("uid", codes("u", &uniform(rows, 5_000, 1))),
        ("track", int32(zipf(rows, 2_000, 0.8, 2))),
        ("played", times((0..rows as i64).map(|row| START + row * 900_000))),
        ("ms_played", int32(uniform(rows, 240_000, 3))),
        ("platform", choice(rows, &["ios", "android", "web"], 4)),
    ])
}

/// Commits, each with the one before it.
fn commits() -> RecordBatch {
    let rows = 30_000u64;
    let sha = |at: u64| hexadecimal([at], 5).concat();
    export(vec![
        ("repo", codes("org/", &zipf(rows as usize, 130, 0.9, 191))),
        ("sha", texts((0..rows).map(sha))),
        ("parent_sha", texts((0..rows).map(|at| sha(at.saturating_sub(1 + at % 7 / 6))))),
        (
            "author_email",
            texts(zipf(rows as usize, 3_000, 0.5, 192).into_iter().map(|n| format!("dev{n}@example.com"))),
        ),
        ("author_date", times(rising(rows as usize, 900.0, 193))),
        ("insertions", amounts(rows as usize, 40.0, 194)),
    ])
}

/// Messages that are known by their channel and a time in seconds with fractions, as text.
fn channel_messages() -> RecordBatch {
    let rows = 40_000;
    let text = |at: i64| format!("{}.{:06}", at / 1_000_000, at % 1_000_000);
    export(vec![
        ("channel", codes("C0", &zipf(rows, 2_500, 0.3, 201))),
        ("ts", texts(rising(rows, 20.0, 202).into_iter().map(text))),
        ("user", codes("U0", &zipf(rows, 3_000, 0.4, 203))),
        ("text", sentences(rows, 204)),
    ])
}

/// Comments, with the times of creation and change that frameworks add to every table.
fn comments_of_posts() -> RecordBatch {
    let rows = 30_000;
    let at = rising(rows, 30.0, 791);
    let later = uniform(rows, 4_000, 792);
    export(vec![
        ("id", serial(rows)),
        ("post_id", int64(zipf(rows, 5_000, 0.5, 793))),
        ("user_id", int64(zipf(rows, 4_000, 0.4, 794))),
        ("body", sentences(rows, 795)),
        ("created_at", times(at.clone())),
        ("updated_at", times(at.iter().zip(later).map(|(at, later)| at + later as i64 * SECOND))),
    ])
}

/// Exports of this file, with the answers that experts accept.
pub(super) fn cases() -> Vec<Case> {
    vec![
        case!(
            "chat",
            chat,
            &[&["conversation_id"]],
            never & ["body"],
            by & [&["message_id"]],
            "a conversation is read as a whole"
        ),
        case!(
            "calls",
            calls,
            &[&["caller"], &["callee"], &["caller", "callee"]],
            never & ["duration_s"],
            by & [],
            "a subscriber's calls"
        ),
        case!(
            "game scores",
            game_scores,
            &[&["player_id"], &["match_id"]],
            never & ["score", "kills"],
            by & [&["match_id", "player_id"]],
            "a match, or a player's history"
        ),
        case!(
            "followers",
            followers,
            &[&["follower_id"], &["followee_id"]],
            never & [],
            by & [&["follower_id", "followee_id"]],
            "both ends identify an edge"
        ),
        case!(
            "repository events",
            git_events,
            &[&["repo_id"], &["actor_id"]],
            never & [],
            by & [&["id"]],
            "events of a repository or of somebody"
        ),
        case!("playback", playback, &[&["uid"]], never & ["ms_played"], by & [], "what somebody listened to"),
        case!(
            "numbered moves",
            numbered_moves,
            &[&["game_id"]],
            never & ["clock_s"],
            by & [&["game_id", "ply"], &["game_id", "move_no", "color"]],
            "a game is read as a whole, and its moves are numbered"
        ),
        case!(
            "commits",
            commits,
            &[&["author_email"], &["sha"], &["repo", "sha"], &["repo", "author_email"]],
            never & ["insertions"],
            by & [&["sha"]],
            "the commit before is that of one other row"
        ),
        case!(
            "messages of channels",
            channel_messages,
            &[&["channel"], &["user"]],
            never & ["text"],
            by & [&["channel", "ts"], &["user", "ts"]],
            "a time may be written as seconds with fractions"
        ),
        case!(by name
            "comments of posts",
            comments_of_posts,
            &[&["post_id"], &["user_id"]],
            never & ["body"],
            by & [&["id"]],
            "times of creation and change are in every table, and make no record of an event"
        ),
        case!(by name
            "heroes of matches",
            heroes_of_matches,
            &[&["match_id"], &["player_id"], &["match_id", "player_id"]],
            never & ["kills", "games_played", "hero"],
            by & [&["match_id", "player_id"], &["match_id", "player_slot"]],
            "who played identifies the row, rather than what it played"
        ),
    ]
}
