//! Parses expressions: one function for each level of the grammar.

use super::error::{ExpressionError, position};
use super::function::{Function, similar};
use super::token::{Token, Tokens};
use super::tree::{Binary, Literal, Node, Place, Strength, Unary};
use std::collections::HashMap;

/// Maximum length in bytes of the text of an expression.
pub const EXPRESSION_BYTES_MAX: usize = 64 << 10;

/// Maximum number of nested levels of an expression: operators, calls and parentheses. Operands that are joined by `&&`
/// alone or by `||` alone are on one level.
pub const EXPRESSION_LEVELS_MAX: usize = 100;

type Parsed = Result<Tree, ExpressionError>;

/// A tree and its number of levels.
struct Tree {
    node: Node,
    levels: usize,
}

/// Parses a text; returns the tree and the fields that it reads.
pub(super) fn parse(text: &str) -> Result<(Node, Vec<String>), ExpressionError> {
    if text.len() > EXPRESSION_BYTES_MAX {
        return Err(ExpressionError::Syntax {
            at: 1,
            found: format!("an expression of {} bytes", text.len()),
            expected: format!("at most {EXPRESSION_BYTES_MAX} bytes"),
        });
    }
    let mut tokens = Tokens::new(text);
    let (at, token) = tokens.next()?;
    let mut parser = Parser {
        text,
        tokens,
        at,
        token,
        level: 0,
        fields: Vec::new(),
        numbers: HashMap::new(),
    };
    let tree = parser.expression()?;
    if parser.token != Token::End {
        return Err(parser.wrong("an operator or the end"));
    }
    Ok((tree.node, parser.fields))
}

struct Parser<'t> {
    text: &'t str,
    tokens: Tokens<'t>,
    /// Position in bytes at which the current token begins.
    at: usize,
    token: Token,
    /// Number of nested calls of this parser.
    level: usize,
    fields: Vec<String>,
    /// Index of each field in `fields`.
    numbers: HashMap<String, usize>,
}

impl Parser<'_> {
    /// Moves to the next token; returns the current one.
    fn advance(&mut self) -> Result<Token, ExpressionError> {
        let (at, token) = self.tokens.next()?;
        self.at = at;
        Ok(std::mem::replace(&mut self.token, token))
    }

    fn is(&self, symbol: &str) -> bool {
        matches!(self.token, Token::Symbol(found) if found == symbol)
    }

    /// Reads a symbol if it is the current token.
    fn eat(&mut self, symbol: &str) -> Result<bool, ExpressionError> {
        let is_here = self.is(symbol);
        if is_here {
            self.advance()?;
        }
        Ok(is_here)
    }

    fn expect(&mut self, symbol: &str, expected: &str) -> Result<(), ExpressionError> {
        if self.eat(symbol)? {
            return Ok(());
        }
        Err(self.wrong(expected))
    }

    fn place(&self) -> Place {
        // The length of the text is limited, so the position fits.
        Place(self.at as u32)
    }

    #[cold]
    fn wrong(&self, expected: &str) -> ExpressionError {
        let mut expected = expected.to_owned();
        if let Token::Name(name) = &self.token {
            let words = [
                ("and", "&&"),
                ("or", "||"),
                ("not", "!"),
                ("like", "~"),
                ("is", "=="),
            ];
            let lower = name.to_lowercase();
            if let Some((_, symbol)) = words.iter().find(|(word, _)| *word == lower) {
                expected = format!("{expected}: did you mean \"{symbol}\"?");
            }
        }
        self.error(self.at, self.token.shown(), expected)
    }

    #[cold]
    fn error(&self, at: usize, found: String, expected: String) -> ExpressionError {
        let at = position(self.text, at);
        ExpressionError::Syntax {
            at,
            found,
            expected,
        }
    }

    /// Checks a number of levels, of the parser or of the tree.
    fn check(&self, levels: usize) -> Result<usize, ExpressionError> {
        if levels <= EXPRESSION_LEVELS_MAX {
            return Ok(levels);
        }
        Err(self.error(
            self.at,
            format!("more than {EXPRESSION_LEVELS_MAX} levels of operators or parentheses"),
            format!("at most {EXPRESSION_LEVELS_MAX}: split the expression, or use \"in\""),
        ))
    }

    /// A tree whose root is above other trees.
    fn above(&self, node: Node, levels: impl IntoIterator<Item = usize>) -> Parsed {
        let below = levels.into_iter().max().unwrap_or(0);
        let levels = self.check(below + 1)?;
        Ok(Tree { node, levels })
    }

    /// Runs a function of the parser one level deeper.
    fn deeper(&mut self, parse: fn(&mut Self) -> Parsed) -> Parsed {
        self.level = self.check(self.level + 1)?;
        let tree = parse(self)?;
        self.level -= 1;
        Ok(tree)
    }

    fn expression(&mut self) -> Parsed {
        self.deeper(Self::conditional)
    }

    fn conditional(&mut self) -> Parsed {
        let condition = self.any()?;
        let place = self.place();
        if !self.eat("?")? {
            return Ok(condition);
        }
        let yes = self.expression()?;
        self.expect(":", "\":\" and the value if the condition is false")?;
        let no = self.expression()?;
        let levels = [condition.levels, yes.levels, no.levels];
        let parts = Box::new([condition.node, yes.node, no.node]);
        self.above(Node::Conditional(place, parts), levels)
    }

    fn any(&mut self) -> Parsed {
        self.joined("||", Self::all, Node::Any)
    }

    fn all(&mut self) -> Parsed {
        self.joined("&&", Self::comparison, Node::All)
    }

    /// Operands with the same symbol between them, on one level.
    fn joined(
        &mut self,
        symbol: &str,
        operand: fn(&mut Self) -> Parsed,
        join: fn(Place, Vec<Node>) -> Node,
    ) -> Parsed {
        let first = operand(self)?;
        let place = self.place();
        if !self.is(symbol) {
            return Ok(first);
        }
        let (mut nodes, mut levels) = (vec![first.node], first.levels);
        while self.eat(symbol)? {
            let next = operand(self)?;
            nodes.push(next.node);
            levels = levels.max(next.levels);
        }
        self.above(join(place, nodes), [levels])
    }

    fn comparison(&mut self) -> Parsed {
        let left = self.sum()?;
        let place = self.place();
        let tree = if self.token.is_name("in") {
            self.advance()?;
            self.expect("(", "\"(\" and the values behind \"in\"")?;
            let (items, levels) = self.list()?;
            let node = Node::In(place, Box::new(left.node), items);
            self.above(node, [left.levels, levels])?
        } else if let Some(op) = self.operator(Strength::Comparison) {
            self.advance()?;
            let right = self.sum()?;
            let node = Node::Binary(op, place, Box::new([left.node, right.node]));
            self.above(node, [left.levels, right.levels])?
        } else {
            return Ok(left);
        };
        if self.operator(Strength::Comparison).is_some() || self.token.is_name("in") {
            let expected =
                "\"&&\", \"||\" or the end: comparisons are joined, as in a < b && b < c";
            return Err(self.wrong(expected));
        }
        Ok(tree)
    }

    /// The operator with this precedence, if it is the current token.
    fn operator(&self, strength: Strength) -> Option<Binary> {
        match self.token {
            Token::Symbol(symbol) => {
                Binary::of_symbol(symbol).filter(|op| op.strength() == strength)
            }
            _ => None,
        }
    }

    fn sum(&mut self) -> Parsed {
        self.chain(Strength::Sum, Self::product)
    }

    fn product(&mut self) -> Parsed {
        self.chain(Strength::Product, Self::unary)
    }

    /// Parses operands joined by operators of one precedence, from left to right.
    fn chain(&mut self, strength: Strength, operand: fn(&mut Self) -> Parsed) -> Parsed {
        let mut left = operand(self)?;
        while let Some(op) = self.operator(strength) {
            let place = self.place();
            self.advance()?;
            let right = operand(self)?;
            let levels = [left.levels, right.levels];
            let node = Node::Binary(op, place, Box::new([left.node, right.node]));
            left = self.above(node, levels)?;
        }
        Ok(left)
    }

    fn unary(&mut self) -> Parsed {
        let place = self.place();
        let op = if self.is("!") {
            Unary::Not
        } else if self.is("-") {
            Unary::Negative
        } else {
            return self.primary();
        };
        self.advance()?;
        let operand = self.deeper(Self::unary)?;
        self.above(
            Node::Unary(op, place, Box::new(operand.node)),
            [operand.levels],
        )
    }

    fn primary(&mut self) -> Parsed {
        let (start, place) = (self.at, self.place());
        if self.eat("(")? {
            let inner = self.expression()?;
            self.expect(")", "\")\" or an operator")?;
            return Ok(inner);
        }
        if matches!(self.token, Token::Symbol(_) | Token::End) {
            return Err(self.wrong("a field, a number, a text, a function or \"(\""));
        }
        let node = match self.advance()? {
            Token::Integer(number) => Node::Literal(Literal::Integer(number)),
            Token::Float(number) => Node::Literal(Literal::Float(number)),
            Token::Text(text) => Node::Literal(Literal::Text(text)),
            Token::Field(name) => self.field(name),
            Token::Name(name) => {
                if self.is("(") && name != "in" {
                    return self.call(&name, start, place);
                }
                match name.as_str() {
                    "true" => Node::Literal(Literal::Bool(true)),
                    "false" => Node::Literal(Literal::Bool(false)),
                    "null" => Node::Literal(Literal::Null),
                    "time" => Node::Time,
                    "received" => Node::Received,
                    "in" => {
                        let expected = "a value before it; a field of this name is $in";
                        return Err(self.error(start, "\"in\"".into(), expected.into()));
                    }
                    _ => self.field(name),
                }
            }
            Token::Symbol(_) | Token::End => Node::Literal(Literal::Null),
        };
        Ok(Tree { node, levels: 1 })
    }

    fn field(&mut self, name: String) -> Node {
        let next = self.fields.len();
        let number = *self.numbers.entry(name).or_insert_with_key(|name| {
            self.fields.push(name.clone());
            next
        });
        Node::Field(number)
    }

    fn call(&mut self, name: &str, start: usize, place: Place) -> Parsed {
        let Some(function) = Function::of_name(name) else {
            let expected = match similar(name) {
                Some(known) => format!("a function: did you mean {known}?"),
                None => {
                    let names: Vec<&str> = Function::ALL.iter().map(|row| row.1).collect();
                    format!("one of the functions {}", names.join(", "))
                }
            };
            let found = Token::Name(name.to_owned()).shown();
            return Err(self.error(start, found, expected));
        };
        self.advance()?;
        let (arguments, levels) = if self.eat(")")? {
            (Vec::new(), 0)
        } else {
            self.list()?
        };
        let (min, max) = function.arguments();
        if !(min..=max).contains(&arguments.len()) {
            let expected = match (min, max) {
                (1, 1) => "1 argument".to_owned(),
                (min, max) if min == max => format!("{min} arguments"),
                (min, max) => format!("{min} to {max} arguments"),
            };
            let found = format!("{name} with {} arguments", arguments.len());
            return Err(self.error(start, found, expected));
        }
        self.above(Node::Call(function, place, arguments), [levels])
    }

    /// Parses expressions up to a closing parenthesis; returns these and the largest number of their levels.
    fn list(&mut self) -> Result<(Vec<Node>, usize), ExpressionError> {
        let (mut nodes, mut levels) = (Vec::new(), 0);
        loop {
            let tree = self.expression()?;
            nodes.push(tree.node);
            levels = levels.max(tree.levels);
            if !self.eat(",")? {
                self.expect(")", "\",\" or \")\"")?;
                return Ok((nodes, levels));
            }
        }
    }
}
