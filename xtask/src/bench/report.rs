//! How a figure is printed: name, value, goal, whether it is met, how many runs stand behind it. Medians are taken here.

use std::time::Duration;

/// The middle of some values; the upper one of the two when their number is even.
pub(super) fn middle(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}

/// A time in milliseconds.
pub(super) fn millis(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

/// A figure with all that stands beside it.
pub(super) struct Figure<'a> {
    pub(super) name: &'a str,
    pub(super) value: f64,
    pub(super) unit: &'a str,
    /// Not more than this; none is a figure without a goal.
    pub(super) goal: Option<f64>,
    /// How many runs the median is of.
    pub(super) runs: usize,
    /// What else has to be known to read it.
    pub(super) beside: &'a str,
}

impl Figure<'_> {
    /// One line of it.
    pub(super) fn line(&self) -> String {
        let Self {
            name,
            value,
            unit,
            goal,
            runs,
            beside,
        } = self;
        let goal = match goal {
            Some(goal) if value <= goal => format!("goal {goal} {unit}, met"),
            Some(goal) => format!("goal {goal} {unit}, missed"),
            None => "no goal".to_owned(),
        };
        let beside = if beside.is_empty() {
            String::new()
        } else {
            format!(", {beside}")
        };
        format!("  {name}: {value:.2} {unit} ({goal}, n={runs}{beside})")
    }

    /// Prints it.
    pub(super) fn print(&self) {
        println!("{}", self.line());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_says_whether_the_goal_is_met() {
        let figure = |value, goal| Figure {
            name: "start",
            value,
            unit: "ms",
            goal,
            runs: 3,
            beside: "",
        };
        let table = [
            (1.0, Some(2.0), "  start: 1.00 ms (goal 2 ms, met, n=3)"),
            (2.5, Some(2.0), "  start: 2.50 ms (goal 2 ms, missed, n=3)"),
            (2.5, None, "  start: 2.50 ms (no goal, n=3)"),
        ];
        for (value, goal, line) in table {
            assert_eq!(figure(value, goal).line(), line);
        }
    }

    #[test]
    fn the_middle_is_a_value_that_was_measured() {
        let table: [(&[f64], f64); 3] =
            [(&[3.0, 1.0, 2.0], 2.0), (&[1.0, 2.0], 2.0), (&[7.0], 7.0)];
        for (values, wanted) in table {
            assert_eq!(middle(values.to_vec()).to_bits(), wanted.to_bits());
        }
    }
}
