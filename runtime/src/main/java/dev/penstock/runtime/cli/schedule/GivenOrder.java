package dev.penstock.runtime.cli.schedule;

import dev.penstock.runtime.config.order.ConfiguredSchedule;
import dev.penstock.runtime.config.run.LoadedConfig;
import dev.penstock.runtime.config.run.RunConfig;
import dev.penstock.runtime.launch.RunParts;
import dev.penstock.schedules.ir.FrozenStages;
import dev.penstock.schedules.ir.ParsedSchedule;
import dev.penstock.schedules.ir.Schedule;
import java.util.List;
import java.util.Optional;

/**
 * An order that a user asks about.
 *
 * @param order compute ops, and transfers where the file has them
 * @param file where its ops stand, if it was read from a file
 * @param sharedGroups stages that hold the same parameters
 * @param frozen stages of which nothing is trained
 * @param loaded the configuration of the run that it is for, if it was read from one
 */
record GivenOrder(
        Schedule order,
        Optional<ParsedSchedule> file,
        List<List<Integer>> sharedGroups,
        FrozenStages frozen,
        Optional<LoadedConfig> loaded) {

    /** One whose stages share nothing. */
    static GivenOrder of(Schedule order) {
        return new GivenOrder(
                order, Optional.empty(), List.of(), FrozenStages.NONE, Optional.empty());
    }

    /** Of the run that it is for, if it was read from a configuration. */
    Optional<RunConfig> config() {
        return loaded.map(LoadedConfig::config);
    }

    /**
     * The same with the codec decided that a configuration leaves open.
     *
     * @throws ConfigException if its run would be refused
     */
    GivenOrder decided() {
        return new GivenOrder(
                order,
                file,
                sharedGroups,
                frozen,
                loaded.map(open -> RunParts.decided(open, configured())));
    }

    /** What the configuration asks for. */
    ConfiguredSchedule configured() {
        return new ConfiguredSchedule(order, file, sharedGroups, frozen);
    }
}
