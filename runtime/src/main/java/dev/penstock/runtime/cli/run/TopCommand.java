package dev.penstock.runtime.cli.run;

import dev.penstock.runtime.cli.command.ExitCode;
import dev.penstock.runtime.cli.command.PenstockCommand;
import dev.penstock.runtime.cli.command.RunDirectoryArgument;
import dev.penstock.runtime.cli.command.Terminal;
import dev.penstock.runtime.dashboard.RunTop;
import dev.penstock.runtime.launch.Interrupts;
import java.io.IOException;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Option;

/** Shows the ranks of a run in the terminal. */
@Command(
        name = "top",
        description = {
            "Shows the ranks of a run in the terminal: where the last step's time went, memory, the"
                    + " last events.",
            "It follows a living run until that ends, or Ctrl-C; without a terminal it looks once."
        },
        footer = "  penstock top runs/quickstart-1")
public final class TopCommand extends PenstockCommand {
    private static final String CLEAR = "\u001b[2J";
    private static final String HOME = "\u001b[H";
    private static final String CLEAR_REST_OF_LINE = "\u001b[K";
    private static final String CLEAR_BELOW = "\u001b[J";

    @Mixin private RunDirectoryArgument run = new RunDirectoryArgument();

    @Option(names = "--once", description = "Look once and end.")
    private boolean once;

    @Override
    public Integer call() throws InterruptedException, IOException {
        var top = new RunTop(run.withEvents());
        boolean follow = !once && Terminal.canDraw();
        var end = new CountDownLatch(1);
        if (follow) {
            Interrupts.install().onInterrupt(end::countDown);
        }
        if (!follow) {
            top.lines(System.currentTimeMillis()).forEach(out()::println);
            out().flush();
            return ExitCode.OK;
        }
        out().print(CLEAR);
        do {
            Terminal.Size size = Terminal.size();
            draw(top.lines(System.currentTimeMillis(), size.columns(), size.rows() - 1));
        } while (!top.hasEnded() && !end.await(1, TimeUnit.SECONDS));
        return ExitCode.OK;
    }

    /** Over what was there: nothing is blank for a moment. */
    private void draw(List<String> lines) {
        out().print(HOME);
        lines.forEach(line -> out().println(line + CLEAR_REST_OF_LINE));
        out().print(CLEAR_BELOW);
        out().flush();
    }
}
