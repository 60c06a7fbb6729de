//! Sets of the relations of a join graph.

/// Set of relations, by their positions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub(super) struct Relations(u64);

/// Maximum number of relations in a set.
pub(super) const MAX_RELATIONS: usize = u64::BITS as usize;

impl Relations {
    /// The set of one relation; empty from [`MAX_RELATIONS`] on.
    pub(super) fn one(relation: usize) -> Self {
        Self(u32::try_from(relation).ok().and_then(|shift| 1u64.checked_shl(shift)).unwrap_or(0))
    }

    /// The first `count` relations.
    pub(super) fn first(count: usize) -> Self {
        (0..count).map(Self::one).fold(Self::default(), Self::with)
    }

    pub(super) fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    pub(super) fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }

    pub(super) fn overlaps(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }

    pub(super) fn has_all(self, other: Self) -> bool {
        other.without(self) == Self::default()
    }

    pub(super) fn len(self) -> usize {
        self.0.count_ones() as usize
    }

    pub(super) fn iter(self) -> impl Iterator<Item = usize> {
        // Without its last bit, a set is smaller by one.
        let next = |left: &u64| Some(left & left.wrapping_sub(1)).filter(|left| *left != 0);
        let first = Some(self.0).filter(|set| *set != 0);
        std::iter::successors(first, next).map(|left| left.trailing_zeros() as usize)
    }

    /// All subsets but the empty one and the whole set.
    pub(super) fn proper_subsets(self) -> impl Iterator<Item = Self> {
        let next = move |subset: &u64| Some(subset.wrapping_sub(1) & self.0).filter(|next| *next != 0);
        std::iter::successors(next(&self.0), next).map(Self)
    }
}
