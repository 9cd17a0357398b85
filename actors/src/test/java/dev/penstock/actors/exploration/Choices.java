package dev.penstock.actors.exploration;

import java.util.ArrayList;
import java.util.List;

/** What may happen next in a world. */
final class Choices {
    private final ModelWorld world;
    private final List<Choice> choices = new ArrayList<>();

    private Choices(ModelWorld world) {
        this.world = world;
    }

    /** All that may happen. */
    static List<Choice> all(ModelWorld world) {
        var all = new Choices(world);
        all.addSteps();
        all.addFaults();
        return all.choices;
    }

    /** What may go wrong. */
    static List<Choice> mishaps(ModelWorld world) {
        var mishaps = new Choices(world);
        mishaps.addFaults();
        return mishaps.choices;
    }

    /** What may happen if nothing goes wrong. */
    static List<Choice> steps(ModelWorld world) {
        var steps = new Choices(world);
        steps.addSteps();
        return steps.choices;
    }

    /** All that a process may do now, and what may befall it. */
    static List<Choice> of(ModelWorld world, ModelProcess process) {
        var own = new Choices(world);
        own.addOfProcess(process);
        own.addFaultsOf(process);
        return own.choices;
    }

    /** All that a supervisor may do now, and what may befall it. */
    static List<Choice> of(ModelWorld world, ModelSupervisor supervisor) {
        var own = new Choices(world);
        own.addOfSupervisor(supervisor.number);
        own.addFaultsOf(supervisor);
        return own.choices;
    }

    private void addSteps() {
        world.processes.forEach(this::addOfProcess);
        for (int s = 0; s < world.supervisors.size(); s++) {
            addOfSupervisor(s);
        }
        for (int i = 0; i < world.toStart.size(); i++) {
            int start = i;
            choices.add(
                    Choice.step(
                            then -> then.start(start),
                            "a process for rank %d starts",
                            world.toStart.get(i)));
        }
        if (choices.isEmpty()) {
            choices.add(Choice.step(ModelWorld::timePasses, "time passes"));
        }
    }

    private void addOfProcess(ModelProcess process) {
        if (!process.lives()) {
            return;
        }
        int p = process.number;
        for (int s = 0; s < world.supervisors.size(); s++) {
            List<Order> orders = process.orders.get(s);
            if (!orders.isEmpty()) {
                int from = s;
                choices.add(
                        Choice.step(
                                then -> then.processes.get(p).takeOrder(then, from),
                                "process %d takes %s of %s",
                                p,
                                orders.getFirst(),
                                ModelWorld.name(s)));
            }
        }
        ModelRank rank = process.rank();
        if (rank != null && rank.mayFinish(world)) {
            choices.add(
                    Choice.step(
                            then -> then.processes.get(p).finishesPass(then),
                            "rank %d ends its pass",
                            rank.rank));
        }
    }

    private void addOfSupervisor(int s) {
        ModelSupervisor supervisor = world.supervisors.get(s);
        if (!supervisor.lives()) {
            return;
        }
        for (ModelProcess process : world.processes) {
            int from = process.number;
            List<Word> words = process.words.get(s);
            if (!words.isEmpty()) {
                choices.add(
                        Choice.step(
                                then ->
                                        then.supervisors
                                                .get(s)
                                                .takeWord(then, then.processes.get(from)),
                                "%s hears %s of process %d",
                                ModelWorld.name(s),
                                words.getFirst(),
                                from));
            }
        }
        for (int i = 0; i < supervisor.deaths.size(); i++) {
            int which = i;
            choices.add(
                    Choice.step(
                            then -> then.supervisors.get(s).hearDeath(then, which),
                            "%s hears that process %d died",
                            ModelWorld.name(s),
                            supervisor.deaths.get(i)));
        }
        if (!supervisor.published.isEmpty()) {
            choices.add(
                    Choice.step(
                            then -> then.supervisors.get(s).hearPublished(then),
                            "%s hears that a checkpoint is whole",
                            ModelWorld.name(s)));
        }
    }

    // ---- what may go wrong ----------------------------------------------------------------------

    private void addFaults() {
        world.processes.forEach(this::addFaultsOf);
        world.supervisors.forEach(this::addFaultsOf);
    }

    private void addFaultsOf(ModelProcess process) {
        if (!process.lives()) {
            return;
        }
        int p = process.number;
        for (int s = 0; s < world.supervisors.size(); s++) {
            int from = s;
            List<Order> orders = process.orders.get(s);
            if (world.faults().losses() > 0 && !orders.isEmpty()) {
                choices.add(
                        Choice.mishap(
                                then -> then.loses(then.processes.get(p).orders.get(from)),
                                "%s to process %d is lost",
                                orders.getFirst(),
                                p));
            }
        }
        if (world.faults().deaths() > 0 && process.rank() != null) {
            choices.add(Choice.mishap(then -> then.isKilled(p), "process %d dies", p));
        }
    }

    private void addFaultsOf(ModelSupervisor supervisor) {
        int s = supervisor.number;
        for (ModelProcess process : world.processes) {
            int p = process.number;
            List<Word> words = process.words.get(s);
            if (world.faults().losses() > 0 && supervisor.lives() && !words.isEmpty()) {
                choices.add(
                        Choice.mishap(
                                then -> then.loses(then.processes.get(p).words.get(s)),
                                "%s of process %d is lost",
                                words.getFirst(),
                                p));
            }
        }
        if (world.owns(s)) {
            addTakeOvers();
            addTakeOversWithin(supervisor);
        }
    }

    /** A supervisor may stand still anywhere; where it matters is before what it writes. */
    private void addTakeOversWithin(ModelSupervisor supervisor) {
        if (world.faults().takeOvers() == 0
                || !supervisor.lives()
                || world.files().run(0).filter(run -> run.ending().isEmpty()).isEmpty()) {
            return;
        }
        var steps = new Choices(world);
        steps.addOfSupervisor(supervisor.number);
        for (Choice step : steps.choices) {
            choices.add(
                    Choice.mishap(
                            then -> then.takeUpBeforeTheRecordOf(step.move()),
                            "B takes the run up before a record of this: %s",
                            step));
        }
    }

    private void addTakeOvers() {
        Faults faults = world.faults();
        for (int lost = 0; faults.takeOvers() > 0 && lost <= faults.lostRecords(); lost++) {
            int records = lost;
            if (world.files().run(lost).filter(run -> run.ending().isEmpty()).isPresent()) {
                choices.add(
                        Choice.mishap(
                                then -> then.takeUp(records),
                                "B takes the run up, of whose journal %d records are lost",
                                lost));
            }
        }
    }
}
