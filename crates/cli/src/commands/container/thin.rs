//! `container thin`: the rules for thinning older messages.

use super::place::{containers, containers_mut, expect, expect_in};
use super::width::{duration_text, nanos};
use crate::args::{ContainerThinArgs, THINNING_FIGURES};
use crate::commands::messages::{Place, told};
use crate::exit::{Failure, Outcome};
use crate::output::{plural, printable};
use crate::terminal::Terminal;
use serde_json::{Map, Value, json};
use tidalite::containers::{Thinning, ThinningFigure};

/// The command-line word for a figure.
fn word(figure: ThinningFigure) -> &'static str {
    let found = THINNING_FIGURES.iter().find(|(_, own)| *own == figure);
    found.map_or("", |(name, _)| name)
}

/// The rules that the user has given.
fn wanted(args: &ContainerThinArgs) -> Outcome<Thinning> {
    let mut thinning = Thinning {
        rules: args.rules.clone(),
        ..Thinning::default()
    };
    for (field, figure) in &args.figures {
        match &**field {
            "*" => thinning.others = *figure,
            _ => thinning.fields.push((field.clone(), *figure)),
        }
    }
    match thinning.problem() {
        Some(problem) => Err(
            Failure::usage(format!("the rules cannot be used: {problem}"))
                .hint("for example: --rule 3d:10m --rule 10d:1h --fn 'level=mean,*=last'"),
        ),
        None => Ok(thinning),
    }
}

/// Runs the command `tidalite container thin`.
pub(super) fn run(args: &ContainerThinArgs, terminal: &mut Terminal<'_>) -> Outcome {
    let (place, name) = (args.of.place(), &args.of.name);
    let thinning = match (args.remove, args.rules.is_empty()) {
        (true, _) => None,
        (false, true) => return show(args, &place, terminal),
        (false, false) => Some(wanted(args)?),
    };
    let db = place.open_to_write()?;
    let mut tx = place.begin(&db)?;
    let mut containers = containers_mut(&place, &mut tx)?;
    expect_in(&place, &containers, name)?;
    containers
        .set_thinning(name, thinning.as_ref())
        .map_err(|error| place.fail(&error))?;
    place.finish(tx, db)?;
    let text = match &thinning {
        None => format!("{name} has no rules now"),
        Some(thinning) => {
            let rules = plural(thinning.rules.len() as u64, "rule", "rules");
            format!("{name} has {rules} now; `tidalite container maintain` applies them")
        }
    };
    told(&text, terminal)
}

fn show(args: &ContainerThinArgs, place: &Place<'_>, terminal: &mut Terminal<'_>) -> Outcome {
    let name = &args.of.name;
    let (_db, snap) = place.open()?;
    let containers = containers(place, &snap)?;
    expect(place, &containers, name)?;
    let thinning = containers.thinning(name);
    let thinning = thinning.map_err(|error| place.fail(&error))?;
    let out = &mut *terminal.out;
    if args.format.is_json() {
        writeln!(out, "{}", json(thinning.as_ref()))?;
        return Ok(out.flush()?);
    }
    let Some(thinning) = thinning else {
        return told(&format!("{name} has no rules"), terminal);
    };
    for rule in &thinning.rules {
        let (age, step) = (duration_text(rule.age), duration_text(rule.step));
        writeln!(out, "rule\t{age}:{step}")?;
    }
    for (field, figure) in &thinning.fields {
        writeln!(out, "field\t{}={}", printable(field), word(*figure))?;
    }
    writeln!(out, "field\t*={}", word(thinning.others))?;
    Ok(out.flush()?)
}

fn json(thinning: Option<&Thinning>) -> Value {
    let Some(thinning) = thinning else {
        return json!({"rules": [], "fields": {}, "others": null});
    };
    let rules = thinning.rules.iter();
    let rules: Vec<Value> = rules
        .map(|rule| json!({"age_ns": nanos(rule.age), "step_ns": nanos(rule.step)}))
        .collect();
    let fields = thinning.fields.iter();
    let fields: Map<String, Value> = fields
        .map(|(field, figure)| (field.clone(), word(*figure).into()))
        .collect();
    json!({"rules": rules, "fields": fields, "others": word(thinning.others)})
}
