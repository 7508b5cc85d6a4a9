//! Parses and evaluates formulas that compute a gain from the label `l`, such as `2^l-1` or `(l+1)^2`. The grammar
//! is:
//!
//! ```text
//! sum     = product { ("+" | "-") product }
//! product = signed { ("*" | "/") signed }
//! signed  = "-" signed | power
//! power   = atom [ "^" signed ]
//! atom    = number | "l" | function "(" sum ")" | "(" sum ")"
//! ```

use std::fmt;

/// A parsed formula, with cached values for the labels 0 to 31.
#[derive(Debug, Clone)]
pub struct Expression {
    text: String,
    root: ExpressionNode,
    whole: Vec<f64>,
}

#[derive(Debug, Clone)]
enum ExpressionNode {
    Number(f64),
    Label,
    Call(MathFunction, Box<ExpressionNode>),
    Both(Operation, Box<ExpressionNode>, Box<ExpressionNode>),
}

type MathFunction = fn(f64) -> f64;
type Operation = fn(f64, f64) -> f64;

/// Functions that a formula may call.
const FUNCTIONS: [(&str, MathFunction); 4] =
    [("log2", libm::log2), ("ln", libm::log), ("exp", libm::exp), ("sqrt", libm::sqrt)];
/// Maximum nesting of parentheses, signs and powers, so that no input exhausts the stack.
const DEEPEST: usize = 50;

impl Expression {
    /// Parses a formula, which must contain the label. The error is a message for the user.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut reader = ExpressionReader { text, rest: text.trim_start(), depth: 0, has_label: false };
        let root = reader.sum()?;
        if !reader.rest.is_empty() {
            return Err(reader.fault());
        }
        if !reader.has_label {
            return Err(format!("{text:?} is not a formula that contains the label l"));
        }
        let whole = (0_u8..32).map(|label| root.value(f64::from(label))).collect();
        Ok(Expression { text: text.trim().to_owned(), root, whole })
    }

    /// Returns the value of the formula for a label.
    #[inline]
    pub fn of(&self, label: f32) -> f64 {
        let place = label as u8;
        match self.whole.get(usize::from(place)) {
            Some(value) if f32::from(place) == label => *value,
            _ => self.root.value(f64::from(label)),
        }
    }
}

impl PartialEq for Expression {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

impl fmt::Display for Expression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl ExpressionNode {
    fn value(&self, label: f64) -> f64 {
        match self {
            ExpressionNode::Number(number) => *number,
            ExpressionNode::Label => label,
            ExpressionNode::Call(function, argument) => function(argument.value(label)),
            ExpressionNode::Both(combine, left, right) => combine(left.value(label), right.value(label)),
        }
    }
}

struct ExpressionReader<'t> {
    text: &'t str,
    rest: &'t str,
    depth: usize,
    has_label: bool,
}

impl ExpressionReader<'_> {
    fn sum(&mut self) -> Result<ExpressionNode, String> {
        let mut left = self.product()?;
        loop {
            let combine: Operation = if self.take("+") {
                |left, right| left + right
            } else if self.take("-") {
                |left, right| left - right
            } else {
                return Ok(left);
            };
            left = ExpressionNode::Both(combine, Box::new(left), Box::new(self.product()?));
        }
    }

    fn product(&mut self) -> Result<ExpressionNode, String> {
        let mut left = self.signed()?;
        loop {
            let combine: Operation = if self.take("*") {
                |left, right| left * right
            } else if self.take("/") {
                |left, right| left / right
            } else {
                return Ok(left);
            };
            left = ExpressionNode::Both(combine, Box::new(left), Box::new(self.signed()?));
        }
    }

    fn signed(&mut self) -> Result<ExpressionNode, String> {
        self.depth += 1;
        if self.depth > DEEPEST {
            return Err(format!("{:?} is nested too deeply", self.text));
        }
        let node = if self.take("-") {
            ExpressionNode::Call(|value| -value, Box::new(self.signed()?))
        } else {
            let base = self.atom()?;
            match self.take("^") {
                true => ExpressionNode::Both(libm::pow, Box::new(base), Box::new(self.signed()?)),
                false => base,
            }
        };
        self.depth -= 1;
        Ok(node)
    }

    fn atom(&mut self) -> Result<ExpressionNode, String> {
        if self.take("(") {
            return self.closed();
        }
        for (name, function) in FUNCTIONS {
            if self.rest.starts_with(name) && self.take(name) {
                return match self.take("(") {
                    true => Ok(ExpressionNode::Call(function, Box::new(self.closed()?))),
                    false => Err(self.fault()),
                };
            }
        }
        if self.take("label") || self.take("l") {
            self.has_label = true;
            return Ok(ExpressionNode::Label);
        }
        let end = self.rest.find(|letter: char| !letter.is_ascii_digit() && letter != '.');
        let (digits, rest) = self.rest.split_at(end.unwrap_or(self.rest.len()));
        let number = digits.parse().map_err(|_| self.fault())?;
        self.rest = rest.trim_start();
        Ok(ExpressionNode::Number(number))
    }

    fn closed(&mut self) -> Result<ExpressionNode, String> {
        let inner = self.sum()?;
        if self.take(")") { Ok(inner) } else { Err(self.fault()) }
    }

    fn take(&mut self, token: &str) -> bool {
        match self.rest.strip_prefix(token) {
            Some(rest) => {
                self.rest = rest.trim_start();
                true
            }
            None => false,
        }
    }

    fn fault(&self) -> String {
        match self.rest {
            "" => format!("the formula {:?} ends too early", self.text),
            rest => format!("the formula {:?} cannot be parsed at {rest:?}", self.text),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formulas_have_the_values_of_school() {
        for (text, label, expected) in [
            ("l", 2.5, 2.5),
            ("2^l-1", 3.0, 7.0),
            ("(2^l-1)/16", 4.0, 0.9375),
            ("-l^2", 3.0, -9.0),
            ("2^-l", 1.0, 0.5),
            ("2^l^2", 2.0, 16.0),
            ("10-l-1", 2.0, 7.0),
            ("8/l/2", 2.0, 2.0),
            (" 1 + 2 * label ", 40.0, 81.0),
            ("log2(l+1)*sqrt(4)", 7.0, 6.0),
            ("exp(l-l)+ln(l/l)", 5.0, 1.0),
        ] {
            let expression = Expression::parse(text).unwrap();
            assert!((expression.of(label) - expected).abs() < 1e-14, "{text}: {}", expression.of(label));
            assert_eq!(expression.to_string(), text.trim());
        }
    }

    #[test]
    fn what_is_no_formula_is_refused() {
        let deep = format!("{}l{}", "(".repeat(5000), ")".repeat(5000));
        for text in
            ["", "2", "l l", "l+", "(l", "l)", "log2 l", "x", "2^", "l..5", "--", &deep, &"-".repeat(9000)]
        {
            assert!(Expression::parse(text).is_err(), "{text}");
        }
        assert_eq!(Expression::parse("l+?").unwrap_err(), "the formula \"l+?\" cannot be parsed at \"?\"");
        assert_eq!(Expression::parse("l+").unwrap_err(), "the formula \"l+\" ends too early");
    }
}
