//! Token counts as providers report them; what was not reported stays unknown, never zero.

/// Tokens of one model call or a sum of calls. `None` is "not reported".
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Usage {
    /// All tokens of the prompt, cached ones included.
    pub input: Option<u64>,
    /// Tokens of the answer, reasoning included where the provider counts it so.
    pub output: Option<u64>,
    /// Prompt tokens that came from the provider's cache.
    pub cache_read: Option<u64>,
    /// Prompt tokens that were written to the provider's cache.
    pub cache_write: Option<u64>,
    /// Tokens spent on reasoning.
    pub reasoning: Option<u64>,
}

impl Usage {
    /// Adds another call: a known figure plus an unknown one stays the known one.
    pub fn add(&mut self, other: &Self) {
        let Self {
            input,
            output,
            cache_read,
            cache_write,
            reasoning,
        } = other;
        sum(&mut self.input, *input);
        sum(&mut self.output, *output);
        sum(&mut self.cache_read, *cache_read);
        sum(&mut self.cache_write, *cache_write);
        sum(&mut self.reasoning, *reasoning);
    }
}

fn sum(total: &mut Option<u64>, more: Option<u64>) {
    if let Some(more) = more {
        *total = Some(total.unwrap_or(0).saturating_add(more));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_plus_unknown_stays_unknown() {
        let mut total = Usage::default();
        total.add(&Usage {
            input: Some(3),
            ..Usage::default()
        });
        total.add(&Usage {
            input: Some(4),
            output: Some(1),
            ..Usage::default()
        });
        assert_eq!(
            total,
            Usage {
                input: Some(7),
                output: Some(1),
                ..Usage::default()
            }
        );
    }
}
