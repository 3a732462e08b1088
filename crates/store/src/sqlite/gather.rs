//! How long a group waits for company: at most a tenth of what the last commit took, and only
//! until as many have come as last time.

use std::sync::mpsc::Receiver;
use std::time::Duration;

use super::clock::moment;

/// A group holds at most this many writes.
const GROUP: usize = 4_096;

/// What the last group was like.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Pace {
    /// How long its commit took.
    pub(super) took: Duration,
    /// How many writes it held.
    pub(super) held: usize,
}

impl Pace {
    /// Gathers a group around its first write.
    pub(super) fn gather<T>(self, first: T, from: &Receiver<T>) -> Vec<T> {
        let mut group = vec![first];
        let start = moment();
        let patience = self.took / 10;
        while group.len() < GROUP {
            match from.try_recv() {
                Ok(job) => {
                    group.push(job);
                    continue;
                }
                Err(_) if group.len() >= self.held => break,
                Err(_) => {}
            }
            let Some(left) = patience.checked_sub(start.elapsed()) else {
                break;
            };
            match from.recv_timeout(left) {
                Ok(job) => group.push(job),
                Err(_) => break,
            }
        }
        group
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::sync_channel;

    use super::*;

    #[test]
    fn it_takes_what_waits_and_does_not_wait_for_more_than_last_time() {
        let (to, from) = sync_channel(8);
        for number in 1..4 {
            to.send(number).unwrap();
        }
        let pace = Pace {
            took: Duration::from_secs(3_600),
            held: 2,
        };
        assert_eq!(pace.gather(0, &from), [0, 1, 2, 3]);
        assert_eq!(Pace::default().gather(5, &from), [5]);
        drop(to);
        assert_eq!(Pace { held: 9, ..pace }.gather(6, &from), [6]);
    }

    #[test]
    fn it_waits_no_longer_than_a_tenth_of_the_last_commit() {
        let (to, from) = sync_channel::<u32>(8);
        let pace = Pace {
            took: Duration::from_micros(10),
            held: 2,
        };
        assert_eq!(pace.gather(0, &from), [0]);
        drop(to);
    }
}
