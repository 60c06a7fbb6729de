//! Placement of splits on servers, by the load of a window.

use crate::simulate::splits::key_space::KeySpace;

/// Load of the servers in one window.
pub(super) struct Servers {
    /// Rows of the window, for each server.
    pub(super) loads: Vec<u64>,
    /// Number of splits, for each server.
    splits: Vec<usize>,
}

impl Servers {
    pub(super) fn new(servers: usize, spaces: &[KeySpace]) -> Self {
        let (mut loads, mut splits) = (vec![0; servers.max(1)], vec![0; servers.max(1)]);
        for split in spaces.iter().flat_map(KeySpace::splits) {
            if let (Some(load), Some(splits)) = (loads.get_mut(split.server), splits.get_mut(split.server)) {
                *load += split.window_rows;
                *splits += 1;
            }
        }
        Self { loads, splits }
    }

    /// Returns the server of a new split: the least loaded one, of several the one with the fewest
    /// splits.
    pub(super) fn place_split(&mut self) -> usize {
        let order = |server: &usize| (self.loads.get(*server), self.splits.get(*server));
        let least = (0..self.loads.len()).min_by_key(order).unwrap_or(0);
        if let Some(splits) = self.splits.get_mut(least) {
            *splits += 1;
        }
        least
    }

    /// Moves one split from the most loaded server to the least loaded one, if that evens out their
    /// loads. Returns whether a split was moved.
    pub(super) fn move_one(&self, spaces: &mut [KeySpace]) -> bool {
        let most = self.loads.iter().enumerate().max_by_key(|(_, load)| **load);
        let least = self.loads.iter().enumerate().min_by_key(|(_, load)| **load);
        let (Some((from, most)), Some((to, least))) = (most, least) else { return false };
        let difference = most - least;
        let movable = spaces.iter_mut().flat_map(|space| space.splits_mut().iter_mut());
        let helps = movable
            .filter(|split| split.server == from && split.window_rows > 0 && split.window_rows < difference);
        // Choose the split whose load is closest to half of the difference.
        let moved = helps.min_by_key(|split| (2 * split.window_rows).abs_diff(difference));
        moved.map(|split| split.server = to).is_some()
    }
}
