//! Generates counter-based random numbers. A stream depends only on its key, such as (seed, tree, node, query), and
//! not on earlier draws from other streams. The order in which threads work therefore cannot change a result.

/// Mixes a key into 64 bits (the finaliser of SplitMix64, Steele et al. 2014).
#[inline]
pub fn mix(key: u64) -> u64 {
    let key = key.wrapping_add(GOLDEN);
    let key = (key ^ (key >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let key = (key ^ (key >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    key ^ (key >> 31)
}

const GOLDEN: u64 = 0x9E37_79B9_7F4A_7C15;

/// A stream of random numbers that is determined by its key.
#[derive(Debug, Clone)]
pub struct Stream {
    key: u64,
    drawn: u64,
}

impl Stream {
    /// Creates the stream for a key. Equal keys give equal streams.
    pub fn new(key: &[u64]) -> Self {
        Stream { key: key.iter().fold(0, |state, part| mix(state ^ mix(*part))), drawn: 0 }
    }

    /// Draws 64 random bits.
    #[inline]
    pub fn bits(&mut self) -> u64 {
        self.drawn = self.drawn.wrapping_add(GOLDEN);
        mix(self.key ^ self.drawn)
    }

    /// Draws a uniformly distributed number in [0, 1).
    #[inline]
    pub fn uniform(&mut self) -> f64 {
        (self.bits() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// Draws an approximately normal number with mean 0 and variance 1, as the scaled sum of four uniform numbers. No
    /// transcendental function is involved, so the result is the same on every machine.
    #[inline]
    pub fn normal(&mut self) -> f64 {
        let bits = self.bits();
        let sum: u64 = (0..4).map(|part| (bits >> (16 * part)) & 0xFFFF).sum();
        (sum as f64 / 65_536.0 - (2.0 - 2.0 / 65_536.0)) * 1.732_050_807_568_877_2
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stream_depends_on_its_whole_key_and_on_nothing_else() {
        let draws = |key: &[u64]| -> Vec<u64> {
            let mut stream = Stream::new(key);
            (0..4).map(|_| stream.bits()).collect()
        };
        assert_eq!(draws(&[1, 2, 3]), draws(&[1, 2, 3]));
        for other in [&[1, 2, 4][..], &[1, 3, 2], &[2, 1, 3], &[1, 2], &[1, 2, 3, 0]] {
            assert_ne!(draws(&[1, 2, 3]), draws(other), "{other:?}");
        }
    }

    #[test]
    fn draws_have_the_moments_they_should() {
        let mut stream = Stream::new(&[42]);
        let count = 200_000;
        let uniform: f64 = (0..count).map(|_| stream.uniform()).sum::<f64>() / f64::from(count);
        assert!((uniform - 0.5).abs() < 0.005, "{uniform}");
        let normals: Vec<f64> = (0..count).map(|_| stream.normal()).collect();
        let mean = normals.iter().sum::<f64>() / f64::from(count);
        let variance = normals.iter().map(|x| (x - mean) * (x - mean)).sum::<f64>() / f64::from(count);
        assert!(mean.abs() < 0.01 && (variance - 1.0).abs() < 0.02, "{mean} {variance}");
    }
}
