//! Inserts values in ascending order into streaming histograms. The result is that of inserting them one by one, but
//! nearly all of them take a few additions: a value that is nearer to the last bin than any two bins are to each other
//! is added to that bin at once, and so are all values below it.

use super::{Bin, Centroid, StreamingHistogram, least, place_of};

/// Number of values of the smallest blocks that are inserted together.
pub(in crate::tree) const PART: usize = 8;

/// Neighbouring values in ascending order that are inserted together if possible.
pub(in crate::tree) trait ValueBlock: Sized {
    /// Returns the number of values.
    fn len(&self) -> usize;

    /// Returns a value by its place, whether it occurs or not.
    fn at(&self, place: usize) -> f64;

    /// Divides the block after this many values.
    fn split_at(&self, count: usize) -> (Self, Self);

    /// Returns the values that occur, in ascending order. If rows have weights, the count may be 0.
    fn values(&self) -> impl Iterator<Item = Centroid>;

    /// Returns the union of a bin and all values, computed as if they were added one by one. The bounds are those of all
    /// moments, including the moments of the values that the bin already contains.
    fn add_to(&self, bin: Bin, bounds: MomentBounds) -> Bin;
}

/// Bounds of the moments of values, which tell whether their sum is exact. If all moments are multiples of a unit, and the
/// sum of their magnitudes is at most 2^53 units, no addition is rounded, so that the order of the additions does not matter.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(in crate::tree) struct MomentBounds {
    /// A power of two. All moments are multiples of it.
    unit: f64,
    /// The largest magnitude of a value.
    reach: f64,
}

impl MomentBounds {
    /// Nothing is known about the moments.
    const UNKNOWN: Self = MomentBounds { unit: 0.0, reach: f64::INFINITY };

    /// Returns the bounds of the moments of float32 values from `first` to `last`, whose counts are multiples of
    /// `count_unit`, a power of two. Nothing is known if there may be values close to zero.
    #[inline(always)]
    pub(in crate::tree) fn of(first: f64, last: f64, count_unit: f64) -> Self {
        let (smallest, reach) = if first > 0.0 { (first, last) } else { (-last, -first) };
        if smallest > 0.0 {
            MomentBounds { unit: unit_of(smallest) * count_unit, reach }
        } else if first == 0.0 && last == 0.0 {
            MomentBounds { unit: f64::INFINITY, reach: 0.0 } // 0 is a multiple of every unit
        } else {
            Self::UNKNOWN
        }
    }

    #[inline(always)]
    fn and(self, other: Self) -> Self {
        MomentBounds { unit: self.unit.min(other.unit), reach: self.reach.max(other.reach) }
    }

    /// Returns whether the sum of moments is exact if the counts add up to `count`.
    #[inline(always)]
    pub(in crate::tree) fn are_exact(&self, count: f64) -> bool {
        /// Half of the limit, because the left-hand side is rounded.
        const UNITS: f64 = (1u64 << 52) as f64;
        self.reach * count <= self.unit * UNITS
    }
}

/// Returns the power of two of which a positive float32 and all larger ones are multiples.
#[inline(always)]
fn unit_of(value: f64) -> f64 {
    /// Number of bits of a float64 and of a float32 behind the first one, and the exponent field of the smallest normal
    /// float32, whose unit subnormal ones have.
    const FRACTION: u32 = f64::MANTISSA_DIGITS - 1;
    const FRACTION_32: u64 = f32::MANTISSA_DIGITS as u64 - 1;
    const LEAST: u64 = 1023 - 126;
    let exponent = (value.to_bits() >> FRACTION).max(LEAST);
    f64::from_bits((exponent - FRACTION_32) << FRACTION)
}

/// The last bin of a full histogram. Its centre is not up to date, because it would need a division per value.
struct LastBin {
    bin: Bin,
    /// The bounds of the moments of its values.
    bounds: MomentBounds,
    /// Centre of the bin before.
    before: f64,
    /// The smallest gap, except that before the last bin.
    least: f64,
    /// A distance from the last bin that is below `least`, by more than rounding errors.
    room: f64,
}

/// Bounds the relative rounding errors of what is compared, with a wide margin.
const MARGIN: f64 = 1.0 / (1u64 << 46) as f64;

/// What a histogram is fed with.
#[derive(Clone, Copy)]
struct Feed {
    /// Rounding errors of centres are below this.
    slack: f64,
    /// The power of two of which all counts are multiples.
    count_unit: f64,
}

impl LastBin {
    /// Returns whether a value is certainly nearer to the last bin than any two bins are to each other. If so, this
    /// holds for all smaller values, too, because the centre of the last bin never decreases.
    #[inline(always)]
    fn is_near(&self, value: f64, slack: f64) -> bool {
        // The gap to the last bin and the gap before the last bin, both times the count of the last bin.
        let gap = value * self.bin.count - self.bin.moment;
        let last_gap = self.bin.moment - (self.before + slack) * self.bin.count;
        gap < self.room * self.bin.count && gap < last_gap
    }

    /// Adds all values of a block.
    #[inline(always)]
    fn add(&mut self, block: &impl ValueBlock, count_unit: f64) {
        self.bounds = self.bounds.and(MomentBounds::of(block.at(0), block.at(block.len() - 1), count_unit));
        self.bin = block.add_to(self.bin, self.bounds);
    }

    /// Adds a value.
    #[inline(always)]
    fn add_value(&mut self, value: Centroid, count_unit: f64) {
        self.bounds = self.bounds.and(MomentBounds::of(value.centre, value.centre, count_unit));
        self.bin = self.bin.and(Bin::of_value(value));
    }
}

impl StreamingHistogram {
    /// Inserts values in ascending order, all above those inserted before. `reach` is the largest magnitude of all values,
    /// which are float32, and `count_unit` the power of two of which all counts are multiples. The targets of a value
    /// whose count is 0 belong to the bin below it.
    #[inline(always)]
    pub(in crate::tree) fn insert_ascending(
        &mut self,
        blocks: impl Iterator<Item = impl ValueBlock>,
        reach: f64,
        count_unit: f64,
    ) {
        let feed = Feed { slack: reach * MARGIN, count_unit };
        let mut last = self.last_bin(feed.slack, MomentBounds::UNKNOWN);
        let mut weightless = 0.0; // targets before the first bin
        for block in blocks {
            let mut rest = block;
            while rest.len() > 0 {
                let near = last.as_ref().map_or(0, |last| near_values(&rest, last, feed.slack));
                let (first, others) = rest.split_at(near.max(PART).min(rest.len()));
                match &mut last {
                    Some(last) if near > 0 => last.add(&first, count_unit),
                    _ => weightless += self.insert_each(&mut last, &first, feed),
                }
                rest = others;
            }
        }
        if let Some(last) = last {
            let bin = last.bin.with_centre();
            self.bins[self.most - 1] = bin;
            self.gaps[self.most - 2] = bin.centre - last.before;
        }
        if let Some(first) = self.bins.first_mut() {
            first.sum += weightless;
        }
    }

    /// Inserts the values of a block one by one. Returns the sum of targets that no bin has.
    #[inline(always)]
    fn insert_each(&mut self, last: &mut Option<LastBin>, block: &impl ValueBlock, feed: Feed) -> f64 {
        let mut weightless = 0.0;
        for value in block.values() {
            if value.count == 0.0 {
                let below = last.as_mut().map(|last| &mut last.bin).or(self.bins.last_mut());
                match below {
                    Some(bin) => bin.sum += value.sum,
                    None => weightless += value.sum,
                }
                continue;
            }
            match last {
                Some(last) if last.is_near(value.centre, feed.slack) => {
                    last.add_value(value, feed.count_unit);
                }
                Some(last) => self.insert_last(last, value, feed),
                None => {
                    self.insert(value);
                    let bounds = MomentBounds::of(value.centre, value.centre, feed.count_unit);
                    *last = self.last_bin(feed.slack, bounds);
                }
            }
        }
        weightless
    }

    /// Returns the last bin, or `None` if further values do not lead to merging yet. The bounds are those of its values.
    #[inline(always)]
    fn last_bin(&self, slack: f64, bounds: MomentBounds) -> Option<LastBin> {
        let most = self.most;
        (most > 1 && self.bins.len() == most).then(|| {
            let least = least(&self.gaps[..most - 2]);
            let room = least * (1.0 - MARGIN) - slack;
            LastBin { bin: self.bins[most - 1], bounds, before: self.bins[most - 2].centre, least, room }
        })
    }

    /// Inserts a value above all others into a full histogram, whose last bin is in `last`: either another pair is nearer
    /// to each other, or the comparison is too close to be decided without the centre of the last bin.
    #[inline(always)]
    fn insert_last(&mut self, last: &mut LastBin, value: Centroid, feed: Feed) {
        let bin = Bin::of(value);
        last.bin = last.bin.with_centre();
        let (gap, last_gap) = (bin.centre - last.bin.centre, last.bin.centre - last.before);
        if gap < last.least && gap < last_gap {
            last.add_value(value, feed.count_unit);
            return;
        }
        // Moving the bins after the merged ones down leaves room for the new one.
        let (bins, gaps, end) = (&mut self.bins[..], &mut self.gaps[..], self.most - 1);
        bins[end] = last.bin;
        gaps[end - 1] = last_gap;
        let place = if last_gap < last.least { end - 1 } else { place_of(gaps, last.least) };
        let merged = bins[place].and(bins[place + 1]).with_centre();
        bins[place] = merged;
        bins.copy_within(place + 2.., place + 1);
        gaps.copy_within(place + 1.., place);
        bins[end] = bin;
        if place > 0 {
            gaps[place - 1] = merged.centre - bins[place - 1].centre;
        }
        gaps[place] = bins[place + 1].centre - merged.centre;
        gaps[end - 1] = bin.centre - bins[end - 1].centre;
        let bounds = MomentBounds::of(value.centre, value.centre, feed.count_unit);
        if let Some(new) = self.last_bin(feed.slack, bounds) {
            *last = new;
        }
    }
}

/// Returns how many leading values are certainly near the last bin: all of them, or those of some parts.
#[inline(always)]
fn near_values(block: &impl ValueBlock, last: &LastBin, slack: f64) -> usize {
    let count = block.len();
    if last.is_near(block.at(count - 1), slack) {
        return count;
    }
    let mut near = 0;
    while near + PART <= count && last.is_near(block.at(near + PART - 1), slack) {
        near += PART;
    }
    near
}
