//! Exports of registers and statistical offices.

use arrow::array::RecordBatch;

use crate::columns::{
    DAY, SECOND, START, amounts, choice, codes, decimals, export, floats, int64, sorted, texts, times,
    uniform, uuids, zipf,
};
use crate::exports::Case;

fn no_key() -> RecordBatch {
    let rows = 20_000;
    export(vec![
        ("country", choice(rows, &["DE", "US", "FR"], 1)),
        ("status", choice(rows, &["new", "done"], 2)),
        ("amount", floats(rows, 30.0, 0.7, 3)),
    ])
}

fn fifty_rows() -> RecordBatch {
    let rows = 50;
    export(vec![
        (
            "country_code",
            texts((0..rows).map(|at| {
                format!("{}{}", (b'A' + (at / 26) as u8) as char, (b'A' + (at % 26) as u8) as char)
            })),
        ),
        ("name", texts((0..rows).map(|at| format!("Country {at}")))),
        ("population", amounts(rows, 5_000_000.0, 1)),
    ])
}

/// Countries, with few rows and a code.
fn countries() -> RecordBatch {
    let code = |at: u64| {
        let letter = |n: u64| char::from(b'A' + u8::try_from(n % 26).unwrap());
        format!("{}{}", letter(at), letter(at / 2 + at % 2 * 11))
    };
    export(vec![
        ("country_code", texts((0..50).map(code))),
        ("country_name", texts((0..50).map(|at| format!("Land of {}", code(at * 7 % 50))))),
        ("region", choice(50, &["Europe", "Asia", "Africa"], 111)),
        ("currency", choice(50, &["EUR", "USD", "XOF", "CNY", "INR"], 112)),
        ("population", int64(uniform(50, 90_000_000, 113))),
        ("gdp_bn", floats(50, 400.0, 90.0, 114)),
    ])
}

/// Elements of buildings with the type that each is of.
fn elements() -> RecordBatch {
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

/// Requests to a city, with dates as Americans write them and places in feet.
fn service_requests() -> RecordBatch {
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

/// A figure of each country and year.
fn country_years() -> RecordBatch {
    let (countries, years) = (260u64, 34u64);
    let country: Vec<u64> = (0..countries * years).map(|row| row / years).collect();
    let code = |at: &u64| {
        let letter = |place: u64| char::from(b'A' + (at / 26u64.pow(place as u32) % 26) as u8);
        (0..3).map(letter).collect::<String>()
    };
    export(vec![
        ("Country Name", texts(country.iter().map(|at| format!("Republic of {}land", code(at))))),
        ("Country Code", texts(country.iter().map(code))),
        ("Year", int64((0..countries * years).map(|row| 1990 + row % years))),
        ("Value", floats((countries * years) as usize, 4e9, 2e9, 401)),
    ])
}

/// Counts of a few services in a few areas on each day, as R writes them: NA for what is missing,
/// and large numbers with exponents.
fn daily_counts() -> RecordBatch {
    let days = 1_200u64;
    let rows = (days * 24) as usize;
    let monthly = uniform(rows, 9_000_000, 411).into_iter().map(|number| match number % 40 {
        0 => "NA".to_owned(),
        1 => format!("{}e+05", number % 9 + 1),
        _ => format!("{}.{}", number / 1_000, number % 1_000),
    });
    let service =
        |row: &u64| ["taxi", "van", "bike", "scooter", "bus", "tram"][(row % 6) as usize].to_owned();
    let area =
        |row: &u64| ["airports", "centre", "north", "outer boroughs"][(row / 6 % 4) as usize].to_owned();
    let all: Vec<u64> = (0..rows as u64).collect();
    export(vec![
        ("service", texts(all.iter().map(service))),
        ("date", times(all.iter().map(|row| 17_000 * DAY + (row / 24).cast_signed() * DAY))),
        ("area", texts(all.iter().map(area))),
        ("trips", floats(rows, 3_000.0, 900.0, 412)),
        ("monthly", texts(monthly)),
    ])
}

/// Towns with an id of their own.
fn towns() -> RecordBatch {
    let rows = 23_000;
    let region = zipf(rows, 2_700, 0.6, 431);
    export(vec![
        ("name", codes("Town", &zipf(rows, 21_000, 0.3, 432))),
        ("country", codes("Country", &region.iter().map(|at| at % 240).collect::<Vec<_>>())),
        ("subcountry", codes("Region", &region)),
        (
            "geonameid",
            int64(uniform(rows, 400, 433).iter().scan(100_000, |id, step| {
                *id += 1 + step;
                Some(*id)
            })),
        ),
    ])
}

/// Contracts of persons, who have at most one of each product.
fn contracts() -> RecordBatch {
    let rows = 12_500;
    let products = ["auto", "moto", "habitation", "santé", "vie", "voyage", "animaux", "loyers"];
    let persons = uniform(rows, 9_000, 571);
    let mut next = std::collections::HashMap::new();
    let product = persons.iter().map(|person| {
        let next: &mut usize = next.entry(*person).or_insert(*person as usize);
        *next += 1;
        products[*next % products.len()].to_owned()
    });
    let product: Vec<String> = product.collect();
    let numbers = (0..rows as u64).map(|row| format!("CT{:02}-{:06}", row % 24, row * 7_919 % 999_983));
    export(vec![
        ("numero_contrat", texts(numbers)),
        ("identifiant_assure", codes("AS", &persons)),
        ("produit", texts(product)),
        ("date_effet", times(uniform(rows, 900, 572).into_iter().map(|day| START - day as i64 * DAY))),
        ("prime_annuelle", decimals(rows, 90_000, 573)),
        ("statut", choice(rows, &["en cours", "résilié", "suspendu"], 574)),
    ])
}

/// Reports of incidents, which are changed later; a beat is a part of a district.
fn incidents() -> RecordBatch {
    let rows = 19_000;
    let beat = uniform(rows, 2_000, 781);
    let at: Vec<i64> = (0..rows as i64).map(|row| START + row * 1_700 * SECOND).collect();
    let days = uniform(rows, 60, 782);
    export(vec![
        ("ID", int64((0..rows as u64).map(|row| 13_300_000 + row * 3 + row % 2))),
        (
            "Case Number",
            codes("JH", &(0..rows as u64).map(|row| row * 7_919 % 1_000_000).collect::<Vec<_>>()),
        ),
        ("Date", times(at.clone())),
        ("Type", choice(rows, &["THEFT", "BATTERY", "FRAUD", "ARSON"], 783)),
        ("Beat", codes("", &beat)),
        ("District", int64(beat.iter().map(|beat| beat / 80))),
        ("Ward", int64(uniform(rows, 50, 784))),
        ("Updated On", times(at.iter().zip(days).map(|(at, days)| at + days as i64 * DAY))),
    ])
}

/// Exports of this file, with the answers that experts accept.
pub(super) fn cases() -> Vec<Case> {
    vec![
        case!(
            "no good key",
            no_key,
            &[&[], &["country", "status"]],
            never & [],
            by & [],
            "nothing identifies anything"
        ),
        case!(
            "fifty rows",
            fifty_rows,
            &[&["country_code"], &["name"], &[]],
            never & ["population"],
            by & [],
            "too few rows to say more"
        ),
        case!(
            "countries",
            countries,
            &[&["country_code"]],
            never & ["population", "gdp_bn"],
            by & [&["country_code"]],
            "the table's own id"
        ),
        case!(by name
            "requests to a city",
            service_requests,
            &[&["Unique Key"], &["Incident Zip"]],
            never & ["X Coordinate (State Plane)", "Y Coordinate (State Plane)"],
            by & [&["Unique Key"]],
            "a coordinate is measured, whatever its unit"
        ),
        case!(
            "elements of buildings",
            elements,
            &[&["GlobalId"]],
            never & ["AreaM2", "LastModified"],
            by & [&["GlobalId"]],
            "a register of things is read by their own id"
        ),
        case!(by name
            "figures of countries",
            country_years,
            &[&["Country Code"], &["Country Name"]],
            never & ["Value"],
            by & [&["Country Code", "Year"], &["Country Name", "Year"]],
            "a year is a time, even if it counts within each country"
        ),
        case!(
            "daily counts, as R writes them",
            daily_counts,
            &[&[], &["service", "area"]],
            never & ["monthly", "trips"],
            by & [&["date", "service", "area"]],
            "numbers are numbers although some are NA"
        ),
        case!(by name
            "towns",
            towns,
            &[&["geonameid"]],
            never & ["country"],
            by & [&["geonameid"]],
            "a table of things is read by their id, not by where they are"
        ),
        case!(by name
            "reports of incidents",
            incidents,
            &[&["ID"], &["Case Number"]],
            never & ["District", "Ward"],
            by & [&["ID"], &["Case Number"]],
            "a report that is changed later is found by its id, not by where it happened"
        ),
        case!(by name
            "contracts",
            contracts,
            &[&["numero_contrat"], &["identifiant_assure"], &["identifiant_assure", "numero_contrat"]],
            never & ["prime_annuelle", "statut"],
            by & [&["numero_contrat"]],
            "a contract has a number, however few contracts of a product a person has"
        ),
    ]
}
