//! Assigns the parts of the data to folds, in the same rotation as the LETOR datasets. With the parts S1 to S5, the
//! first fold trains on S1, S2 and S3, validates on S4 and tests on S5. The second fold trains on S2, S3 and S4,
//! validates on S5 and tests on S1.

use planetree_base::error::{Error, Result};
use planetree_base::size::counted;

/// What a fold does with the part that follows its training parts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ValidationPart {
    /// The part determines the best round.
    #[default]
    Validate,
    /// There is no such part: the fold trains on all parts but the test part.
    Train,
    /// The part is not used, so that a model without validation trains on the same rows as one with validation.
    Unused,
}

/// The parts of the data that one fold uses, as indices.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Rotation {
    /// Parts to train on, in order.
    pub train: Vec<usize>,
    /// Part to validate on, if any.
    pub valid: Option<usize>,
    /// Part to test on.
    pub test: usize,
}

/// Returns the folds for a number of parts.
pub(super) fn rotations(parts: usize, validation: ValidationPart) -> Result<Vec<Rotation>> {
    let held_back = if validation == ValidationPart::Train { 1 } else { 2 };
    if parts <= held_back {
        let (minimum, remedy) = match validation {
            ValidationPart::Train => (2, "use at least 2 folds"),
            ValidationPart::Validate | ValidationPart::Unused => (3, "use at least 3 folds, or --no-valid"),
        };
        let are = counted(parts as u64, "fold is", "folds are");
        return Err(Error::usage(format_args!("{are} too few: at least {minimum} are needed"), remedy));
    }
    let fold = |first: usize| {
        let part = |offset: usize| (first + offset) % parts;
        Rotation {
            train: (0..parts - held_back).map(part).collect(),
            valid: (validation == ValidationPart::Validate).then(|| part(parts - 2)),
            test: part(parts - 1),
        }
    };
    Ok((0..parts).map(fold).collect())
}

/// Checks that folds can be made of a number of parts.
pub(crate) fn check_folds(parts: usize, validation: ValidationPart) -> Result<()> {
    rotations(parts, validation).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn five_parts_rotate_as_in_letor() {
        let folds = rotations(5, ValidationPart::Validate).unwrap();
        let of = |train: &[usize], valid, test| Rotation { train: train.to_vec(), valid: Some(valid), test };
        let expected = [
            of(&[0, 1, 2], 3, 4),
            of(&[1, 2, 3], 4, 0),
            of(&[2, 3, 4], 0, 1),
            of(&[3, 4, 0], 1, 2),
            of(&[4, 0, 1], 2, 3),
        ];
        assert_eq!(folds, expected);
    }

    #[test]
    fn an_unused_validation_part_leaves_the_other_parts_as_they_are() {
        let with = rotations(5, ValidationPart::Validate).unwrap();
        let without = rotations(5, ValidationPart::Unused).unwrap();
        for (with, without) in with.into_iter().zip(without) {
            assert_eq!(without, Rotation { valid: None, ..with });
        }
    }

    #[test]
    fn every_part_is_tested_once_and_not_trained_on_in_that_fold() {
        use ValidationPart::{Train, Unused, Validate};
        for (parts, validation) in [(2, Train), (3, Validate), (3, Train), (10, Validate), (5, Unused)] {
            let folds = rotations(parts, validation).unwrap();
            let mut tested: Vec<usize> = folds.iter().map(|fold| fold.test).collect();
            tested.sort_unstable();
            assert_eq!(tested, (0..parts).collect::<Vec<_>>());
            for fold in folds {
                let mut all = fold.train.clone();
                all.extend(fold.valid);
                all.push(fold.test);
                all.extend((validation == Unused).then_some((fold.test + parts - 1) % parts));
                all.sort_unstable();
                assert_eq!(all, (0..parts).collect::<Vec<_>>());
            }
        }
    }

    #[test]
    fn too_few_parts_are_rejected() {
        use ValidationPart::{Train, Unused, Validate};
        for (parts, validation) in [(0, Validate), (2, Validate), (1, Train), (2, Unused)] {
            assert_eq!(rotations(parts, validation).unwrap_err().exit_code(), 2, "{parts}");
        }
    }
}
