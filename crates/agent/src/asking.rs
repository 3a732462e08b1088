//! The rules of asking a model once: how long to be patient, and when to try again. Pure: time is an argument, counted
//! from any fixed moment; whoever drives a request keeps the clock and waits.

use std::time::Duration;

use attache_model::{Delta, ErrorKind, ModelError, Patience, Retries, Verdict};

/// The first wait of our own before a retry; doubled each time.
const FIRST_BACK_OFF: Duration = Duration::from_millis(500);

/// Watches one request for silence and for lack of progress.
#[derive(Clone, Debug)]
pub struct Watch {
    patience: Patience,
    opened: Option<Duration>,
    begun: Duration,
    sign: Duration,
    progress: Duration,
}

impl Watch {
    /// A watch over a request that begins now.
    #[must_use]
    pub fn new(patience: Patience, now: Duration) -> Self {
        Self {
            patience,
            opened: None,
            begun: now,
            sign: now,
            progress: now,
        }
    }

    /// Something came: the answer's head, a ping, a piece of the reply.
    pub fn sign(&mut self, now: Duration, progress: bool) {
        if self.opened.is_none() {
            self.opened = Some(now);
            self.progress = now;
        }
        self.sign = now;
        if progress {
            self.progress = now;
        }
    }

    /// When patience ends if nothing comes.
    #[must_use]
    pub fn until(&self) -> Duration {
        match self.opened {
            None => self.begun + self.patience.first_byte,
            Some(_) => {
                (self.sign + self.patience.silence).min(self.progress + self.patience.no_progress)
            }
        }
    }

    /// The failure that the end of patience is.
    #[must_use]
    pub fn over(&self) -> ModelError {
        let Patience {
            first_byte,
            silence,
            no_progress,
        } = self.patience;
        let text = if self.opened.is_none() {
            format!("no answer came within {}", seconds(first_byte))
        } else if self.sign + silence <= self.progress + no_progress {
            format!("nothing came for {}", seconds(silence))
        } else {
            format!(
                "the connection is alive, but no piece of the reply came for {}",
                seconds(no_progress)
            )
        };
        ModelError::new(ErrorKind::Stalled, text)
    }
}

/// Whether a delta is a piece of the reply.
#[must_use]
pub fn is_progress(delta: &Delta) -> bool {
    match delta {
        Delta::Text(_)
        | Delta::Reasoning(_)
        | Delta::ReasoningOpaque(_)
        | Delta::CallStarted { .. }
        | Delta::CallArguments { .. }
        | Delta::Usage(_)
        | Delta::Stop(_) => true,
        Delta::Failed(_) | Delta::Notice(_) => false,
    }
}

/// What to do about a request that failed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Again {
    /// Wait this long, then ask again.
    After(Duration),
    /// It is over.
    No(ModelError),
}

/// Decides whether a failed request is tried again: only when nothing of the reply was seen, the failure may pass, and
/// there are tries left. A wait that the provider asks for is obeyed up to the cap, and named when it is beyond it.
/// `attempt` counts the failures so far, this one included; `spread` is a number from 0 up to 1 that keeps many from
/// trying at the same moment.
#[must_use]
pub fn again(error: ModelError, attempt: u32, seen: bool, retries: Retries, spread: f64) -> Again {
    if seen || !error.retryable {
        return Again::No(error);
    }
    let Retries { most, longest_wait } = retries;
    if let Some(wanted) = error.retry_after
        && wanted > longest_wait
    {
        let mut error = error;
        error.message = format!(
            "{} (the provider asks to come back in {}, which is longer than is waited for here: {})",
            error.message,
            seconds(wanted),
            seconds(longest_wait)
        );
        error.retryable = false;
        return Again::No(error);
    }
    if attempt > most {
        let mut error = error;
        if most > 0 {
            error.message = format!("{} (tried {} times)", error.message, most + 1);
        }
        return Again::No(error);
    }
    let doubled = FIRST_BACK_OFF.saturating_mul(1 << (attempt - 1).min(10));
    let own = doubled.min(longest_wait).mul_f64(1.0 + spread / 4.0);
    Again::After(own.max(error.retry_after.unwrap_or_default()))
}

/// What a failure says about the provider as a whole: whether it is down, or has only said no to this request.
#[must_use]
pub fn verdict(error: &ModelError) -> Verdict {
    match error.kind {
        // Too many requests of ours: it is up, and asks this one to come back.
        ErrorKind::Overloaded if error.status == Some(429) => Verdict::Up,
        ErrorKind::Unreachable | ErrorKind::Overloaded => Verdict::Down(error.message.clone()),
        ErrorKind::Refused if error.retryable => Verdict::Down(error.message.clone()),
        ErrorKind::Stalled | ErrorKind::Truncated | ErrorKind::Cancelled => Verdict::Unknown,
        ErrorKind::Auth
        | ErrorKind::Refused
        | ErrorKind::ModelUnknown
        | ErrorKind::ContextOverflow
        | ErrorKind::Malformed
        | ErrorKind::ScriptUnmatched => Verdict::Up,
    }
}

/// Why a request is tried again, in a few words.
#[must_use]
pub fn reason(error: &ModelError) -> &'static str {
    match error.kind {
        ErrorKind::Overloaded => "overloaded",
        ErrorKind::Unreachable => "cannot be reached",
        ErrorKind::Truncated => "the stream broke",
        ErrorKind::Stalled => "no answer in time",
        _ => "the provider failed",
    }
}

/// A time in words: whole seconds from ten on, tenths below.
#[must_use]
pub fn seconds(time: Duration) -> String {
    let seconds = time.as_secs_f64();
    if seconds >= 9.95 {
        format!("{seconds:.0} s")
    } else {
        let tenths = format!("{seconds:.1}");
        format!("{} s", tenths.trim_end_matches(".0"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn s(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    const PATIENCE: Patience = Patience {
        first_byte: s(20),
        silence: s(10),
        no_progress: s(15),
    };

    #[test]
    fn pings_count_against_silence_and_not_as_progress() {
        let mut watch = Watch::new(PATIENCE, s(0));
        assert_eq!(watch.until(), s(20));
        assert!(watch.over().message.contains("within 20 s"));
        watch.sign(s(3), false);
        assert_eq!(watch.until(), s(13), "silence");
        assert!(watch.over().message.contains("nothing came for 10 s"));
        watch.sign(s(5), true);
        for ping in 6..=17 {
            watch.sign(s(ping), false);
        }
        assert_eq!(watch.until(), s(20), "15 s after the last piece");
        assert!(watch.over().message.contains("alive"), "{}", watch.over());
        watch.sign(s(18), true);
        assert_eq!(watch.until(), s(28));
        assert!(watch.over().retryable);
    }

    fn overloaded(retry_after: Option<Duration>) -> ModelError {
        ModelError {
            retry_after,
            ..ModelError::new(ErrorKind::Overloaded, "Overloaded").with_status(429)
        }
    }

    #[test]
    fn waits_double_and_end() {
        let retries = Retries::default();
        let wait = |attempt| again(overloaded(None), attempt, false, retries, 0.0);
        let waits: Vec<Again> = (1..=4).map(wait).collect();
        let millis = |millis| Again::After(Duration::from_millis(millis));
        assert_eq!(waits, [500, 1_000, 2_000, 4_000].map(millis));
        let Again::No(error) = wait(5) else {
            panic!("four are enough")
        };
        assert_eq!(error.message, "Overloaded (tried 5 times)");
        // Many do not come at the same moment, and none earlier than it should.
        let Again::After(spread) = again(overloaded(None), 1, false, retries, 0.9) else {
            panic!("it is tried again")
        };
        assert!(spread > Duration::from_millis(500) && spread < Duration::from_millis(626));
    }

    #[test]
    fn nothing_is_asked_twice_once_something_was_seen_or_when_it_cannot_help() {
        let retries = Retries::default();
        for (error, seen) in [
            (overloaded(None), true),
            (ModelError::new(ErrorKind::Auth, "no"), false),
            (ModelError::new(ErrorKind::ContextOverflow, "no"), false),
        ] {
            assert!(matches!(again(error, 1, seen, retries, 0.0), Again::No(_)));
        }
        let none = Retries { most: 0, ..retries };
        let Again::No(error) = again(overloaded(None), 1, false, none, 0.0) else {
            panic!("there are no tries")
        };
        assert_eq!(error.message, "Overloaded");
    }

    #[test]
    fn a_wanted_wait_is_the_least_and_has_a_cap() {
        let retries = Retries::default();
        let wait = |seconds| again(overloaded(Some(s(seconds))), 1, false, retries, 0.0);
        assert_eq!(wait(0), Again::After(Duration::from_millis(500)));
        assert_eq!(wait(2), Again::After(s(2)));
        assert_eq!(wait(60), Again::After(s(60)));
        let Again::No(error) = wait(999_999) else {
            panic!("a day is too long")
        };
        assert!(error.message.contains("come back in 999999 s"), "{error}");
    }

    #[test]
    fn what_a_failure_says_about_its_provider() {
        let error = |kind, status: u16| ModelError::new(kind, "m").with_status(status);
        let mut server = error(ErrorKind::Refused, 500);
        server.retryable = true;
        for (error, want) in [
            (error(ErrorKind::Overloaded, 429), Verdict::Up),
            (error(ErrorKind::Overloaded, 529), Verdict::Down("m".into())),
            (server, Verdict::Down("m".into())),
            (error(ErrorKind::Refused, 400), Verdict::Up),
            (error(ErrorKind::Auth, 401), Verdict::Up),
            (
                ModelError::new(ErrorKind::Unreachable, "m"),
                Verdict::Down("m".into()),
            ),
            (ModelError::new(ErrorKind::Stalled, "m"), Verdict::Unknown),
        ] {
            assert_eq!(verdict(&error), want, "{error:?}");
        }
    }

    #[test]
    fn times_in_words() {
        for (millis, words) in [
            (300, "0.3 s"),
            (4_000, "4 s"),
            (9_960, "10 s"),
            (61_400, "61 s"),
        ] {
            assert_eq!(seconds(Duration::from_millis(millis)), words);
        }
    }
}
