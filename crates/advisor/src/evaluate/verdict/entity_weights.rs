//! Weights of columns as the entities that reads name.

use crate::evaluate::figures::evaluation::Evaluation;
use crate::evaluate::figures::partition_key::PartitionKeyReport;
use crate::evaluate::roles::names::{
    denotes_log, denotes_period, denotes_side, denotes_staff, denotes_tenant,
};
use crate::evaluate::roles::{Role, RoleReport};
use crate::evaluate::verdict::knowledge::Knowledge;
use evenkeel_model::units::PartitionCount;
use evenkeel_stats::skew::Verdict;

/// Weight of the reads of an entity that cannot be the partition key alone: they cost about as much
/// under all others.
const CANNOT_PLACE_ROWS: f64 = 0.1;
/// Weight of the reads of an entity that is even enough, but not even.
const NOT_QUITE_EVEN: f64 = 0.45;
/// Weight of the reads of an entity that only the number of its values makes uneven.
const NEARLY_EVEN: f64 = 0.7;
/// Largest max/mean of an entity of few values that is nearly even.
const LITTLE_SKEW: f64 = 1.5;
/// Smallest number of values per partition with which an entity spreads well.
const MANY_VALUES: f64 = 100.0;
/// Weight of an entity whose rows are the parts of one thing.
const PARTS_OF_A_WHOLE: f64 = 1.5;
/// Rows of a value beyond the first at which it fully counts as gathering rows.
const FEW_ROWS_EACH: f64 = 2.0;
/// Mean rows of a user or a device above which some of them have recurred already, and the others
/// will.
const COMES_BACK: f64 = 1.1;
/// The same for the rows of events, of which each user has many if the export is long enough.
const COMES_BACK_TO_EVENTS: f64 = 1.01;
/// Minimum weight of the reads of such a thing.
const OF_RECURRING: f64 = 0.5;
/// Mean rows of an id above which it identifies things with many rows, whatever the name of the
/// export.
const ROWS_OF_A_THING: f64 = 3.0;
/// Weight of an entity that another column refers to, too.
const OF_PARTIES: f64 = 1.3;
/// Weight of one of the two sides of a game.
const OF_SIDES: f64 = 0.3;
/// Weight of the person who handled what a row is about.
const OF_STAFF: f64 = 0.3;
/// Weight of things of which there are fewer than users of them: exercises, rooms, titles.
const OF_CATALOGUE: f64 = 0.7;
/// Weight of the address of a requested page, compared with the sender of the request.
const OF_PAGES: f64 = 0.5;
/// Weight of an address in rows about something else, such as the host that reads a partition now.
const OF_PLACES: f64 = 0.1;
/// Weight of an entity whose rows are read as parts of something larger.
const OF_MEMBERS: f64 = 0.25;
/// Weight of a place in the log of a database.
const OF_LOG: f64 = 0.05;
/// Weight of an entity that is the row itself, although some rows share its id.
const ITSELF: f64 = 0.2;

/// Unnormalised weights of columns as entities.
pub(super) struct EntityWeights<'w, Q> {
    knowledge: &'w Knowledge<'w>,
    evaluation: &'w Evaluation,
    partitions: PartitionCount,
    /// Whether a key is even enough.
    qualifies: Q,
    /// Figures of the kinds that together identify what a row is about, if these can place rows:
    /// the partition of a topic that a group of consumers reads.
    pub(super) subject: Option<&'w PartitionKeyReport>,
    /// Users, devices and others that come back and can place rows, with the number of each.
    users: Vec<(&'w RoleReport, f64)>,
}

impl<'w, Q: Fn(&PartitionKeyReport) -> bool> EntityWeights<'w, Q> {
    /// Prepares the weights. `qualifies` says whether a key is even enough.
    pub(super) fn new(
        knowledge: &'w Knowledge<'w>,
        evaluation: &'w Evaluation,
        partitions: PartitionCount,
        qualifies: Q,
    ) -> Self {
        let is_kind =
            |column: &String| knowledge.role(column) == Some(Role::Dimension) && !denotes_period(column);
        let is_of_kinds = |key: &[String]| key.len() > 1 && key.iter().all(is_kind);
        let subject = evaluation.candidates.iter().find(|key| {
            is_of_kinds(&key.partition_key) && knowledge.is_thing(&key.partition_key) && qualifies(key)
        });
        let mut weights = Self { knowledge, evaluation, partitions, qualifies, subject, users: Vec::new() };
        let users = knowledge.roles.iter().filter(|report| report.role == Role::Entity && report.recurs);
        let with_count = |user: &'w RoleReport| {
            let counted = weights.counted(user).filter(|counted| (weights.qualifies)(counted))?;
            Some((user, counted.distinct.estimate as f64))
        };
        weights.users = users.filter_map(with_count).collect();
        weights
    }

    /// Figures of the entity in a column, if it was counted.
    fn counted(&self, report: &RoleReport) -> Option<&'w PartitionKeyReport> {
        let thing = report.thing();
        self.evaluation.candidates.iter().find(|key| key.partition_key == thing)
    }

    /// Returns how well the values of a key spread over the partitions, up to 1.
    pub(super) fn spreads(&self, key: &PartitionKeyReport) -> f64 {
        let values = key.distinct.estimate.max(1) as f64;
        (values / (MANY_VALUES * self.partitions.len() as f64)).min(1.0).sqrt()
    }

    /// Returns how well the thing of a column spreads; 1 if it is not counted or not even enough.
    pub(super) fn spread(&self, report: &RoleReport) -> f64 {
        let counted = self.counted(report);
        counted.map_or(1.0, |counted| if (self.qualifies)(counted) { self.spreads(counted) } else { 1.0 })
    }

    /// Weight of the reads of a key by how evenly it places rows.
    pub(super) fn usable(&self, key: &PartitionKeyReport) -> f64 {
        match key.over(self.partitions) {
            _ if !(self.qualifies)(key) => CANNOT_PLACE_ROWS,
            Some(placement) => match placement.verdict {
                Verdict::Even | Verdict::FewRows => 1.0,
                Verdict::FewKeys if placement.skew.max_over_mean <= LITTLE_SKEW => NEARLY_EVEN,
                _ => NOT_QUITE_EVEN,
            },
            None => NOT_QUITE_EVEN,
        }
    }

    /// Whether rows are, by their natural key, the lines of the entity in a column: most orders of
    /// a shop have one line, and are read as orders.
    fn has_lines(&self, report: &RoleReport) -> bool {
        let thing = report.thing();
        let [thing] = thing.as_slice() else { return false };
        let is_line = |other: &RoleReport| {
            other.role == Role::LineNumber
                && other.counts_within == [thing.clone()]
                && self.knowledge.natural_key.contains(&other.column)
        };
        self.knowledge.natural_key.contains(thing) && self.knowledge.roles.iter().any(is_line)
    }

    /// The tenant within which the codes of a column mean something: customer 17 of one tenant is
    /// not customer 17 of another. `None` unless rows are numbered by tenant, and if a code tells
    /// its tenant.
    fn tenant_of(&self, report: &RoleReport) -> Option<&'w String> {
        let in_key = |other: &&RoleReport| self.knowledge.natural_key.contains(&other.column);
        let numbers = self.knowledge.roles.iter().filter(in_key);
        let tenants = numbers.filter(|number| number.column != report.column);
        let mut tenants = tenants.flat_map(|number| &number.counts_within);
        tenants.find(|tenant| {
            denotes_tenant(tenant)
                && **tenant != report.column
                && report.role == Role::Entity
                && !report.determines.contains(tenant)
                && !report.counts_within.contains(tenant)
        })
    }

    /// Columns with codes of tenants, each with the column of the tenant.
    pub(super) fn codes(&self) -> Vec<(String, String)> {
        let code = |report: &RoleReport| Some((report.column.clone(), self.tenant_of(report)?.clone()));
        self.knowledge.roles.iter().filter_map(code).collect()
    }

    /// Columns that identify the thing of each column, with its weight.
    pub(super) fn things(&self, codes: &[(String, String)]) -> Vec<(Vec<String>, f64)> {
        let thing = |report: &RoleReport| match codes.iter().find(|(code, _)| *code == report.column) {
            Some((code, tenant)) => vec![tenant.clone(), code.clone()],
            None => report.thing(),
        };
        self.knowledge.roles.iter().map(|report| (thing(report), self.weight(report))).collect()
    }

    /// Whether a column has things that a larger number of users act on.
    fn is_of_catalogue(&self, report: &RoleReport, values: f64) -> bool {
        let identifies = |report: &RoleReport| self.knowledge.identifying.contains(&report.column);
        let acts =
            |(user, count): &(&RoleReport, f64)| *count > values && (identifies(user) || !identifies(report));
        !report.recurs && !report.holds_parts && !report.given && self.users.iter().any(acts)
    }

    /// Weight of a column as an entity that reads name; 0 if it is not an entity.
    pub(super) fn weight(&self, report: &RoleReport) -> f64 {
        let base = match report.role {
            // No read names a place in the log of a database.
            Role::Entity if denotes_log(&report.column) => OF_LOG,
            Role::Entity => 1.0,
            Role::Dimension => 0.1,
            _ => return 0.0,
        };
        let Some(counted) = self.counted(report) else { return 0.02 * base };
        let values = counted.distinct.estimate.max(1) as f64;
        let rows_each = self.evaluation.rows as f64 / values;
        let is_of_catalogue = self.is_of_catalogue(report, values);
        // Of a property without a name, others may follow by chance.
        let attributes =
            if report.is_obscure || is_of_catalogue { 0.0 } else { report.attributes(self.knowledge.roles) };
        // Values that rarely repeat gather nothing. Beyond that, the rows of a value reflect the
        // length of the export rather than the reads.
        let gathers = ((rows_each - 1.0) / FEW_ROWS_EACH).clamp(0.0, 1.0);
        let recurs_from = if self.knowledge.has_events() { COMES_BACK_TO_EVENTS } else { COMES_BACK };
        let comes_back = report.recurs && rows_each >= recurs_from;
        let gathers = if comes_back || self.has_lines(report) { gathers.max(OF_RECURRING) } else { gathers };
        // One row of many parts is no more than that row.
        let is_identifying = self.knowledge.identifying.contains(&report.column);
        let natural = if is_identifying { 1.0 + gathers } else { 1.0 };
        let whole = if report.holds_parts { PARTS_OF_A_WHOLE } else { 1.0 };
        // The sender and the receiver are the parties of a payment; its place is one of its
        // attributes.
        let party = match &report.shares_values_with {
            // Each player is on both sides, so that no side has all games of a player.
            Some(other) if denotes_side(&report.column) && denotes_side(other) => OF_SIDES,
            Some(_) => OF_PARTIES,
            None => 1.0,
        };
        // Reads name the client more often than the page that it requested.
        let page = match report.is_page {
            // A page with one row or two is the source of the row.
            true if rows_each < ROWS_OF_A_THING => OF_PLACES,
            true => OF_PAGES,
            false => 1.0,
        };
        // Receipts are looked up by their number or by the customer, whoever the cashier was.
        let is_staff =
            denotes_staff(&report.column) && !report.given && !is_identifying && !self.knowledge.has_events();
        let staff = if is_staff { OF_STAFF } else { 1.0 };
        let catalogue = if is_of_catalogue { OF_CATALOGUE } else { 1.0 };
        let member = if report.is_member { OF_MEMBERS } else { 1.0 };
        let itself = if report.is_of_rows && rows_each < ROWS_OF_A_THING { ITSELF } else { 1.0 };
        // Where the subject of a row is now is one of its attributes.
        let place =
            if report.is_address && !is_identifying && self.subject.is_some() { OF_PLACES } else { 1.0 };
        // The rows of one message have little in common but that they were sent together.
        let standing = if report.is_reference { 1.0 } else { whole * (1.0 + 0.5 * attributes) * natural };
        report.identity(self.knowledge.roles)
            * itself
            * page
            * party
            * place
            * member
            * catalogue
            * staff
            * self.usable(counted)
            * base
            * self.spreads(counted)
            * gathers
            * standing
    }
}
