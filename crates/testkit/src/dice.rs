//! Seeded chance: the same seed gives the same throws, on every machine.

/// Dice of a seed. The generator is SplitMix64, which needs no care in its seeding.
#[derive(Clone, Debug)]
pub struct Dice(u64);

impl Dice {
    /// The dice of a seed.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// The next number.
    pub fn throw(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below `end`, which is not 0.
    pub fn below(&mut self, end: u64) -> u64 {
        self.throw() % end
    }

    /// True once in so many times.
    pub fn chance(&mut self, once_in: u64) -> bool {
        self.below(once_in) == 0
    }

    /// One of these; there is at least one.
    pub fn pick<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        let len = u64::try_from(from.len()).unwrap_or(u64::MAX);
        let place = usize::try_from(self.below(len)).unwrap_or(0);
        &from[place]
    }

    /// Other dice, for another player.
    #[must_use]
    pub fn fork(&mut self) -> Self {
        Self(self.throw())
    }
}
