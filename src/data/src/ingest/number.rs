//! Parses decimal numbers to correctly rounded `f32`. The parser is fast for short numbers, which are typical of
//! ranking data.
//!
//! Text is processed eight bytes at a time. The leading digits of an eight-byte word are found and converted with a
//! few multiplications, so the cost does not depend on the number of digits.

/// Result of parsing a token as a number.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Number {
    /// A number in the finite range of `f32`.
    Value(f32),
    /// One of the spellings of a missing value, such as `NULL` or `nan`.
    Missing,
    /// One of the spellings of infinity, such as `inf`.
    Infinite,
    /// A finite number that overflows `f32`.
    TooLarge,
    /// Not a decimal number.
    Malformed,
}

/// Returns the number of leading digits in eight bytes of text, and their value. The first byte of the text is the
/// least significant byte of `word`.
#[inline(always)]
fn leading_digits(word: u64) -> (u32, u64) {
    const ZEROS: u64 = 0x3030_3030_3030_3030;
    let digits = word ^ ZEROS;
    // A byte is a digit if and only if its high nibble is now 0 and remains 0 after adding 6. Only a byte that is not
    // a digit can cause a carry into the next byte, so the leading digits are not affected.
    let stops = (digits | digits.wrapping_add(0x0606_0606_0606_0606)) & 0xF0F0_F0F0_F0F0_F0F0;
    let count = stops.trailing_zeros() / 8; // 8 if every byte is a digit
    if count == 0 {
        return (0, 0);
    }
    // Move the digits to the most significant bytes; the bytes shifted in are leading zeros.
    let run = digits << (64 - 8 * count);
    let pairs = run.wrapping_mul(10).wrapping_add(run >> 8);
    let low = (pairs & 0x0000_00FF_0000_00FF).wrapping_mul(0x000F_4240_0000_0064);
    let high = ((pairs >> 16) & 0x0000_00FF_0000_00FF).wrapping_mul(0x0000_2710_0000_0001);
    (count, low.wrapping_add(high) >> 32)
}

const POWERS: [f64; 9] = [1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8];
const WHOLE_POWERS: [u64; 9] = [1, 10, 100, 1_000, 10_000, 100_000, 1_000_000, 10_000_000, 100_000_000];

#[inline(always)]
fn word_at(text: &[u8], at: usize) -> Option<u64> {
    let bytes = text.get(at..at + 8)?;
    // The slice above is eight bytes long.
    Some(u64::from_le_bytes(bytes.try_into().ok()?))
}

/// Parses a plain decimal number that starts at the offset `at`: an optional `-`, at most seven digits, and
/// optionally a decimal point with at most seven more digits. Returns the value and the offset of the end. Returns
/// `None` for anything else, such as exponents and long numbers, and for numbers in the last bytes of `text`. The
/// caller must parse these numbers in another way.
///
/// The branches are deliberate: with a predicted branch, the processor can start on the next number before the end of
/// this one is known. A version without branches is a third slower.
#[inline(always)]
pub(crate) fn short_decimal(text: &[u8], at: usize) -> Option<(f32, usize)> {
    let word = word_at(text, at)?;
    let negative = word & 0xFF == u64::from(b'-');
    let start = at + usize::from(negative);
    let word = if negative { word_at(text, start)? } else { word };
    let (whole_digits, whole) = leading_digits(word);
    if whole_digits == 0 || whole_digits == 8 {
        return None;
    }
    let mut end = start + whole_digits as usize;
    let magnitude = if (word >> (8 * whole_digits)) & 0xFF == u64::from(b'.') {
        let (places, fraction) = leading_digits(word_at(text, end + 1)?);
        if places == 8 || places == 0 {
            return None;
        }
        end += 1 + places as usize;
        // The dividend is below 10^14 < 2^53 and the divisor below 10^22, so both are exact, and the quotient is the
        // nearest f64 (Clinger 1990). Rounding it to f32 is correct unless it is the midpoint of two f32 numbers.
        let exact = whole * WHOLE_POWERS[places as usize] + fraction;
        let quotient = exact as f64 / POWERS[places as usize];
        if is_f32_midpoint(quotient) {
            return None;
        }
        quotient as f32
    } else {
        whole as f32
    };
    Some((if negative { -magnitude } else { magnitude }, end))
}

/// Parses a feature index of at most seven digits and the colon after it, which start at the offset `at`. Returns the
/// index and the offset after the colon, or `None` for anything else.
#[inline(always)]
pub(crate) fn index_and_colon(text: &[u8], at: usize) -> Option<(u32, usize)> {
    let word = word_at(text, at)?;
    let (digits, index) = leading_digits(word);
    let colon = digits < 8 && (word >> (8 * digits)) & 0xFF == u64::from(b':');
    // Seven digits fit in u32.
    (digits > 0 && colon).then_some((index as u32, at + digits as usize + 1))
}

/// Checks whether an f64 is exactly halfway between two f32 numbers. In that case, rounding a decimal number first to
/// f64 and then to f32 may give a different result than rounding it directly to f32.
#[inline(always)]
fn is_f32_midpoint(value: f64) -> bool {
    value.to_bits() & 0x1FFF_FFFF == 0x1000_0000
}

/// Parses a whole token in any decimal notation, or as a spelling of a missing value or of infinity.
#[cold]
#[inline(never)]
pub(crate) fn any_number(token: &[u8]) -> Number {
    if is_missing_word(token) {
        return Number::Missing;
    }
    let digits = match token {
        [b'+' | b'-', rest @ ..] => rest,
        all => all,
    };
    if ["inf", "infinity"].iter().any(|word| digits.eq_ignore_ascii_case(word.as_bytes())) {
        return Number::Infinite;
    }
    // Accept only decimal notation here, because the float parser accepts further spellings of infinity and NaN.
    if !matches!(digits.first(), Some(b'0'..=b'9' | b'.')) {
        return Number::Malformed;
    }
    // The float parser accepts a leading minus sign, but no plus sign.
    let body = if token[0] == b'-' { token } else { digits };
    match fast_float2::parse::<f32, _>(body) {
        Ok(value) if value.is_finite() => Number::Value(value),
        Ok(_) => Number::TooLarge,
        Err(_) => Number::Malformed,
    }
}

/// Parses a token with a decimal comma: replaces the comma by a point and calls `parse`. A token that contains a
/// point is malformed, because the point would be a thousands separator or a mistake.
pub(crate) fn parse_decimal_comma(token: &[u8], parse: fn(&[u8]) -> Number) -> Number {
    if token.contains(&b'.') {
        return Number::Malformed;
    }
    let mut short = [0; 32];
    let mut long = Vec::new();
    let copy = match short.get_mut(..token.len()) {
        Some(short) => short,
        None => {
            long.resize(token.len(), 0);
            &mut long[..]
        }
    };
    for (to, from) in copy.iter_mut().zip(token) {
        *to = if *from == b',' { b'.' } else { *from };
    }
    parse(copy)
}

/// Checks whether a token is one of the usual spellings of a missing value in ranking files, such as `NULL` (LETOR
/// 3), `NA`, `nan`, `none` and `?`.
fn is_missing_word(token: &[u8]) -> bool {
    let word = match token {
        [b'+' | b'-', rest @ ..] if rest.eq_ignore_ascii_case(b"nan") => rest,
        all => all,
    };
    ["null", "na", "n/a", "nan", "none"].iter().any(|spelling| word.eq_ignore_ascii_case(spelling.as_bytes()))
        || word == b"?"
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Parses a number with the standard library, whose correctly rounded result is the expected one.
    fn reference(text: &str) -> f32 {
        text.parse().unwrap()
    }

    fn fast(text: &str) -> Option<f32> {
        let padded = format!("{text} 12345678");
        short_decimal(padded.as_bytes(), 0).map(|(value, end)| {
            assert_eq!(end, text.len(), "{text}");
            value
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(20_000))]
        #[test]
        fn short_decimals_equal_the_standard_parser(text in "-?[0-9]{1,7}(\\.[0-9]{1,7})?") {
            match fast(&text) {
                Some(value) => prop_assert_eq!(value.to_bits(), reference(&text).to_bits()),
                None => prop_assert!(is_f32_midpoint(text.parse::<f64>().unwrap().abs()), "{} not parsed", text),
            }
        }

        #[test]
        fn any_number_equals_the_standard_parser(text in "[+-]?[0-9]{1,25}(\\.[0-9]{0,25})?([eE][+-]?[0-9]{1,3})?") {
            let expected = reference(&text);
            match any_number(text.as_bytes()) {
                Number::Value(value) => prop_assert_eq!(value.to_bits(), expected.to_bits()),
                other => prop_assert!(other == Number::TooLarge && expected.is_infinite(), "{} {:?}", text, other),
            }
        }
    }

    #[test]
    fn midpoints_are_left_to_the_exact_parser() {
        // 1 + 2^-24 is the midpoint of two f32 numbers, and a decimal number just above it must round up.
        assert_eq!(
            any_number(b"1.000000059604644775390626"),
            Number::Value(reference("1.000000059604644775390626"))
        );
        assert!(is_f32_midpoint(1.0 + 2f64.powi(-24)));
    }

    #[test]
    fn a_comma_may_be_the_decimal_mark() {
        for (text, value) in [("0,5", 0.5), ("-12,25", -12.25), ("3", 3.0), ("1,5e3", 1500.0)] {
            assert_eq!(parse_decimal_comma(text.as_bytes(), any_number), Number::Value(value), "{text}");
        }
        let long = format!("0,{}", "3".repeat(40));
        assert_eq!(parse_decimal_comma(long.as_bytes(), any_number), Number::Value(0.333_333_34));
        for text in ["1.5", "1.234,5", "1,234,567", ",", "1,5x"] {
            assert_eq!(parse_decimal_comma(text.as_bytes(), any_number), Number::Malformed, "{text}");
        }
        assert_eq!(parse_decimal_comma(b"n/a", any_number), Number::Missing);
    }

    #[test]
    fn special_and_malformed_tokens() {
        for word in ["NULL", "null", "NA", "nan", "NaN", "-nan", "None", "?", "n/a"] {
            assert_eq!(any_number(word.as_bytes()), Number::Missing, "{word}");
        }
        for word in ["inf", "-Inf", "+inf", "Infinity"] {
            assert_eq!(any_number(word.as_bytes()), Number::Infinite, "{word}");
        }
        for word in ["1e39", "-3.5e38", "1e400"] {
            assert_eq!(any_number(word.as_bytes()), Number::TooLarge, "{word}");
        }
        for word in ["", "x", "0x10", "1x", "1.2.3", "--1", "+-1", "1e", "e5", ".", "1,5", "infinit"] {
            assert_eq!(any_number(word.as_bytes()), Number::Malformed, "{word}");
        }
        assert_eq!(any_number(b".5"), Number::Value(0.5));
        assert_eq!(any_number(b"+2."), Number::Value(2.0));
        assert_eq!(any_number("9".repeat(400).as_bytes()), Number::TooLarge);
        assert_eq!(any_number(format!("0.{}", "3".repeat(400)).as_bytes()), Number::Value(0.333_333_34));
    }
}
