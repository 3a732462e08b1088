//! The rules of the line, with time as a number; and the shell, with a clock that stands still.

use std::sync::Arc;
use std::time::Duration;

use super::*;

const fn at(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

fn limits(in_flight: usize, requests: Option<u32>, tokens: Option<u64>) -> GateLimits {
    GateLimits {
        in_flight,
        requests_per_minute: requests,
        tokens_per_minute: tokens,
    }
}

fn down() -> Verdict {
    Verdict::Down("connection refused".to_owned())
}

/// Lets requests through as fast as they may go; the answer is when each went.
fn run(rules: &mut Rules, requests: usize, tokens: u64) -> Vec<Duration> {
    let mut now = Duration::ZERO;
    let mut went = Vec::new();
    for _ in 0..requests {
        rules.join(tokens);
    }
    while went.len() < requests {
        match rules.admit(now) {
            Head::Passed => {
                went.push(now);
                rules.ended(now, &Verdict::Up, tokens, Some(tokens));
            }
            Head::Waits(Some(wait)) => now += wait.max(Duration::from_nanos(1)),
            other => panic!("{other:?}"),
        }
    }
    went
}

/// Most that went within any minute.
fn most_in_a_minute(went: &[Duration]) -> usize {
    let minute = Duration::from_secs(60);
    (0..went.len())
        .map(|from| {
            let until = went[from] + minute;
            went[from..].iter().take_while(|at| **at < until).count()
        })
        .max()
        .unwrap_or(0)
}

#[test]
fn no_minute_sees_more_requests_than_the_limit_and_the_limit_is_nearly_used() {
    for limit in [1, 2, 7, 60, 1_000] {
        let mut rules = Rules::new(&limits(64, Some(limit), None));
        let went = run(&mut rules, 4 * limit as usize, 0);
        assert!(most_in_a_minute(&went) <= limit as usize, "{limit}");
        let took = went.last().expect("some went").as_secs_f64();
        // Of a small limit a bucket that holds one whole request leaves less.
        let share = if limit < 10 { 0.5 } else { 0.89 };
        assert!(took <= 60.0 * 4.0 / share, "{limit}: {took}");
    }
}

#[test]
fn no_minute_sees_more_tokens_than_the_limit() {
    let mut rules = Rules::new(&limits(64, None, Some(6_000)));
    let went = run(&mut rules, 60, 200);
    assert!(most_in_a_minute(&went) * 200 <= 6_000);
}

#[test]
fn tokens_that_were_not_expected_are_paid_by_those_who_come_later() {
    let mut rules = Rules::new(&limits(64, None, Some(6_000)));
    rules.join(100);
    assert_eq!(rules.admit(at(0)), Head::Passed);
    rules.ended(at(0), &Verdict::Up, 100, Some(1_000));
    rules.join(100);
    // 600 - 1,000 = -400 are there, 100 are wanted, 90 come each second.
    let Head::Waits(Some(wait)) = rules.admit(at(0)) else {
        panic!("it must wait");
    };
    assert!((wait.as_secs_f64() - 500.0 / 90.0).abs() < 0.01, "{wait:?}");
}

#[test]
fn a_request_larger_than_the_bucket_passes_when_the_bucket_is_full() {
    let mut rules = Rules::new(&limits(64, None, Some(1_000)));
    rules.join(50_000);
    assert_eq!(rules.admit(at(0)), Head::Passed);
}

#[test]
fn places_are_given_in_order_and_come_back() {
    let mut rules = Rules::new(&limits(2, None, None));
    let tickets: Vec<u64> = (0..4).map(|_| rules.join(0)).collect();
    assert_eq!(rules.admit(at(0)), Head::Passed);
    assert_eq!(rules.admit(at(0)), Head::Passed);
    assert_eq!(rules.admit(at(0)), Head::Waits(None));
    assert_eq!(rules.cause(at(0)), Cause::Places(2));
    assert_eq!(rules.first(), Some(tickets[2]));
    // Who gives up in line is passed over.
    assert!(rules.give_up(tickets[2]));
    assert!(!rules.give_up(tickets[2]), "only once");
    rules.ended(at(0), &Verdict::Unknown, 0, None);
    assert_eq!(rules.admit(at(0)), Head::Passed);
    assert_eq!(rules.first(), None);
}

#[test]
fn a_provider_that_is_down_is_asked_by_one_at_a_time_ever_more_seldom() {
    let mut rules = Rules::new(&limits(64, None, None));
    for _ in 0..DOWN_AFTER {
        rules.join(0);
        assert_eq!(rules.admit(at(0)), Head::Passed);
    }
    for _ in 0..DOWN_AFTER {
        rules.ended(at(0), &down(), 0, None);
    }
    let mut now = at(0);
    let mut pauses = Vec::new();
    for _ in 0..1_000 {
        rules.join(0);
    }
    let mut sent_away = 0;
    while rules.first().is_some() {
        match rules.admit(now) {
            Head::Waits(Some(wait)) => {
                pauses.push(wait.as_secs());
                now += wait;
            }
            Head::Passed => {
                // While one probes, nobody else passes.
                assert_eq!(rules.admit(now), Head::Waits(None));
                rules.ended(now, &down(), 0, None);
            }
            Head::SentAway(last) => {
                assert_eq!(last, "connection refused");
                sent_away += 1;
            }
            Head::Waits(None) => panic!("nothing is under way"),
        }
    }
    assert_eq!(pauses, [1, 2, 4, 8, 16, 30, 30, 30]);
    assert_eq!(sent_away, 1_000 - 8, "eight have asked");
    // Later one tries again when its time has come, and when it answers, all is as before.
    now += LONGEST_PAUSE;
    rules.join(0);
    assert_eq!(rules.admit(now), Head::Passed);
    rules.ended(now, &Verdict::Up, 0, None);
    for _ in 0..3 {
        rules.join(0);
        assert_eq!(rules.admit(now), Head::Passed);
    }
}

#[test]
fn single_failures_do_not_open_the_circuit() {
    let mut rules = Rules::new(&limits(64, None, None));
    for round in 0..20 {
        rules.join(0);
        assert_eq!(rules.admit(at(round)), Head::Passed);
        let verdict = if round % 4 == 3 { Verdict::Up } else { down() };
        rules.ended(at(round), &verdict, 0, None);
    }
}

#[test]
fn a_probe_that_is_given_up_lets_the_next_one_probe() {
    let mut rules = Rules::new(&limits(64, None, None));
    for _ in 0..DOWN_AFTER {
        rules.join(0);
        rules.admit(at(0));
        rules.ended(at(0), &down(), 0, None);
    }
    rules.join(0);
    assert_eq!(rules.admit(at(2_000)), Head::Passed);
    rules.ended(at(2_000), &Verdict::Unknown, 0, None);
    rules.join(0);
    assert_eq!(rules.admit(at(2_000)), Head::Passed);
}

#[tokio::test(start_paused = true)]
async fn those_who_wait_pass_in_the_order_in_which_they_came() {
    let gate = Arc::new(Gate::new("p", &limits(1, None, None)));
    let first = gate.try_pass(0).expect("nobody is before it");
    let waits = gate.try_pass(0).expect_err("one is under way");
    assert_eq!(waits.to_string(), "waits for p (1 requests at once)");
    let order = Arc::new(std::sync::Mutex::new(Vec::new()));
    let mut tasks = Vec::new();
    for number in 0..5 {
        let (gate, order) = (Arc::clone(&gate), Arc::clone(&order));
        tasks.push(tokio::spawn(async move {
            let pass = gate.pass_in_turn(0).await.expect("it is up");
            order.lock().expect("nobody fails").push(number);
            drop(pass);
        }));
        tokio::task::yield_now().await;
    }
    // One in the middle goes, and the one that is first too.
    for gone in [0, 2] {
        tasks[gone].abort();
        tokio::task::yield_now().await;
    }
    drop(first);
    for (number, task) in tasks.into_iter().enumerate() {
        assert_eq!(task.await.is_err(), [0, 2].contains(&number));
    }
    assert_eq!(*order.lock().expect("nobody fails"), [1, 3, 4]);
    gate.try_pass(0).expect("all have left");
}

#[tokio::test(start_paused = true)]
async fn a_rate_is_waited_for_and_a_dead_provider_is_given_up() {
    let gate = Arc::new(Gate::new("p", &limits(8, Some(60), None)));
    let begun = crate::clock::now();
    for _ in 0..12 {
        let mut pass = Arc::clone(&gate).pass_in_turn(0).await.expect("it is up");
        pass.judge(Verdict::Up);
    }
    // Six at once, then 54 a minute.
    let took = (crate::clock::now() - begun).as_secs_f64();
    assert!((took - 6.0 / 0.9).abs() < 0.1, "{took}");

    let gate = Arc::new(Gate::new("q", &limits(8, None, None)));
    let mut asked = 0;
    let closed = loop {
        match Arc::clone(&gate).pass_in_turn(0).await {
            Ok(mut pass) => {
                asked += 1;
                pass.judge(down());
            }
            Err(closed) => break closed,
        }
    };
    assert!(asked < 20, "{asked}");
    assert!(closed.to_string().contains("connection refused"));
    assert!(
        gate.try_pass(0)
            .expect_err("it is down")
            .to_string()
            .contains("it is down"),
        "a person sees why"
    );
}
