package dev.penstock.runtime.cli;

import dev.penstock.runtime.dashboard.RunTop;
import dev.penstock.runtime.launch.Interrupts;
import java.io.IOException;
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
final class TopCommand extends PenstockCommand {
    private static final String HOME_AND_CLEAR = "\u001b[H\u001b[2J";

    @Mixin private RunDirectoryArgument run = new RunDirectoryArgument();

    @Option(names = "--once", description = "Look once and end.")
    private boolean once;

    @Override
    public Integer call() throws InterruptedException, IOException {
        var top = new RunTop(run.withEvents());
        boolean follow = !once && Terminal.isTerminal();
        var end = new CountDownLatch(1);
        if (follow) {
            Interrupts.install().onInterrupt(end::countDown);
        }
        do {
            String text = String.join("\n", top.lines(System.currentTimeMillis()));
            out().println(follow ? HOME_AND_CLEAR + text : text);
            out().flush();
        } while (follow && !top.hasEnded() && !end.await(1, TimeUnit.SECONDS));
        return ExitCode.OK;
    }
}
