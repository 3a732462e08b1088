//! What a reply cost in tokens, as the provider counted it. It holds no prices.

/// Token counts of one reply. `None` means that the provider did not say, which is not zero.
///
/// One convention for every dialect: `input` is the whole prompt, the parts read from and written to a cache included;
/// `output` is everything the model produced, reasoning included. `cache_read`, `cache_write` and `reasoning` are
/// shares of these two, never in addition to them.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Usage {
    /// Tokens of the whole prompt.
    pub input: Option<u64>,
    /// Tokens produced.
    pub output: Option<u64>,
    /// The part of `input` that came from the provider's cache.
    pub cache_read: Option<u64>,
    /// The part of `input` that was written to the provider's cache.
    pub cache_write: Option<u64>,
    /// The part of `output` that was reasoning.
    pub reasoning: Option<u64>,
}

impl Usage {
    /// Takes over every count that `later` knows. Providers report running totals, so a later count replaces.
    pub fn merge(&mut self, later: &Usage) {
        let Usage {
            input,
            output,
            cache_read,
            cache_write,
            reasoning,
        } = *later;
        self.input = input.or(self.input);
        self.output = output.or(self.output);
        self.cache_read = cache_read.or(self.cache_read);
        self.cache_write = cache_write.or(self.cache_write);
        self.reasoning = reasoning.or(self.reasoning);
    }

    /// Whether nothing is known.
    pub fn is_unknown(&self) -> bool {
        *self == Usage::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_later_count_replaces_and_silence_keeps() {
        let mut usage = Usage {
            input: Some(5),
            output: Some(1),
            ..Usage::default()
        };
        usage.merge(&Usage {
            output: Some(9),
            cache_read: Some(2),
            ..Usage::default()
        });
        assert_eq!(
            usage,
            Usage {
                input: Some(5),
                output: Some(9),
                cache_read: Some(2),
                cache_write: None,
                reasoning: None
            }
        );
        assert!(!usage.is_unknown());
        assert!(Usage::default().is_unknown());
    }
}
