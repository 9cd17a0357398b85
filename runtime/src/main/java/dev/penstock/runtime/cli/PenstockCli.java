package dev.penstock.runtime.cli;

import dev.penstock.runtime.cli.about.CompletionCommand;
import dev.penstock.runtime.cli.about.ConfigCommand;
import dev.penstock.runtime.cli.about.DoctorCommand;
import dev.penstock.runtime.cli.about.ManCommand;
import dev.penstock.runtime.cli.about.VersionProvider;
import dev.penstock.runtime.cli.checkpoint.CheckpointCommand;
import dev.penstock.runtime.cli.cluster.AttachCommand;
import dev.penstock.runtime.cli.cluster.CertsCommand;
import dev.penstock.runtime.cli.cluster.LocalClusterCommand;
import dev.penstock.runtime.cli.cluster.NodeCommand;
import dev.penstock.runtime.cli.cluster.RebalanceCommand;
import dev.penstock.runtime.cli.cluster.RunsCommand;
import dev.penstock.runtime.cli.cluster.StopCommand;
import dev.penstock.runtime.cli.data.DataCommand;
import dev.penstock.runtime.cli.init.InitCommand;
import dev.penstock.runtime.cli.model.ModelCommand;
import dev.penstock.runtime.cli.plan.MemoryCommand;
import dev.penstock.runtime.cli.plan.PlanCommand;
import dev.penstock.runtime.cli.run.ExportCommand;
import dev.penstock.runtime.cli.run.PruneCommand;
import dev.penstock.runtime.cli.run.ReportCommand;
import dev.penstock.runtime.cli.run.TopCommand;
import dev.penstock.runtime.cli.run.UiCommand;
import dev.penstock.runtime.cli.schedule.ScheduleCommand;
import dev.penstock.runtime.cli.tokenizer.TokenizerCommand;
import dev.penstock.runtime.cli.train.ChaosCommand;
import dev.penstock.runtime.cli.train.EvaluateCommand;
import dev.penstock.runtime.cli.train.GenerateCommand;
import dev.penstock.runtime.cli.train.ServeCommand;
import dev.penstock.runtime.cli.train.TrainCommand;
import java.util.List;
import java.util.Set;
import picocli.CommandLine.Command;
import picocli.CommandLine.Option;

/** The program itself: what it can do is in its subcommands. */
@Command(
        name = "penstock",
        description = "Trains GPTs through a pipeline of actors.",
        versionProvider = VersionProvider.class,
        footerHeading = "%nStart here:%n",
        footer = {
            "  penstock train sample-configs/quickstart.conf",
            "  penstock init my-model",
            "  penstock doctor",
            "  penstock config check sample-configs/quickstart.conf",
        })
final class PenstockCli {
    private static final List<Class<?>> COMMANDS =
            List.of(
                    InitCommand.class,
                    TrainCommand.class,
                    ChaosCommand.class,
                    EvaluateCommand.class,
                    GenerateCommand.class,
                    ServeCommand.class,
                    ScheduleCommand.class,
                    PlanCommand.class,
                    MemoryCommand.class,
                    TokenizerCommand.class,
                    DataCommand.class,
                    CheckpointCommand.class,
                    ModelCommand.class,
                    ConfigCommand.class,
                    NodeCommand.class,
                    LocalClusterCommand.class,
                    RunsCommand.class,
                    AttachCommand.class,
                    StopCommand.class,
                    PruneCommand.class,
                    RebalanceCommand.class,
                    UiCommand.class,
                    TopCommand.class,
                    ReportCommand.class,
                    ExportCommand.class,
                    CertsCommand.class,
                    DoctorCommand.class,
                    CompletionCommand.class,
                    ManCommand.class);

    /** They speak of all the others. */
    private static final Set<Class<?>> OF_ALL = Set.of(CompletionCommand.class, ManCommand.class);

    @Option(
            names = {"-h", "--help"},
            usageHelp = true,
            description = "Show this help; every command has its own.")
    @SuppressWarnings("unused") // picocli answers
    private boolean help;

    @Option(
            names = {"-V", "--version"},
            versionHelp = true,
            description = "Show the version and the commit it was built from.")
    @SuppressWarnings("unused") // picocli answers
    private boolean version;

    /**
     * The commands that a command line needs: the one that it names, or all of them. picocli reads
     * every option of a command as it is added, which for all commands takes longer than the rest
     * of a start.
     */
    static List<Class<?>> commandsFor(String... arguments) {
        if (arguments.length == 0) {
            return COMMANDS;
        }
        return COMMANDS.stream()
                .filter(command -> nameOf(command).equals(arguments[0]))
                .filter(command -> !OF_ALL.contains(command))
                .findFirst()
                .<List<Class<?>>>map(List::of)
                .orElse(COMMANDS);
    }

    private static String nameOf(Class<?> command) {
        return command.getAnnotation(Command.class).name();
    }
}
