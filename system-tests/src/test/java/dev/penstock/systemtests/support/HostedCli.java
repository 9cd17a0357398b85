package dev.penstock.systemtests.support;

import dev.penstock.runtime.cli.Cli;
import dev.penstock.runtime.cli.ForkedJava;
import java.io.IOException;
import java.io.StringWriter;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.FutureTask;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;

/**
 * The program on a thread of the test's own JVM, for clients and nodes that no signal reaches: a
 * JVM that lives for seconds costs more than everything that such a node does.
 */
public final class HostedCli implements RunningCli {
    private static final Duration END = Duration.ofSeconds(60);

    private final StringWriter output = new StringWriter();
    private final FutureTask<Integer> task;
    private final Thread thread;

    private HostedCli(List<String> words) {
        task = new FutureTask<>(() -> Cli.run(output, words.toArray(String[]::new)));
        thread = Thread.ofPlatform().daemon().name("hosted-" + words.getFirst()).start(task);
    }

    /** Starts the program as {@link ForkedCli#start(List, String...)} does. */
    public static HostedCli start(List<String> arguments, String... settings) throws IOException {
        ForkedJava.asLaunched();
        return new HostedCli(ForkedCli.withSettings(arguments, settings));
    }

    @Override
    public void interrupt() {
        thread.interrupt();
    }

    @Override
    public String output() {
        return output.toString();
    }

    @Override
    public boolean isAlive() {
        return !task.isDone();
    }

    @Override
    public int awaitEnd(Duration limit) throws InterruptedException {
        try {
            return task.get(limit.toMillis(), TimeUnit.MILLISECONDS);
        } catch (ExecutionException e) {
            throw new AssertionError(output(), e.getCause());
        } catch (TimeoutException e) {
            throw new AssertionError("still running after " + limit + ": " + output(), e);
        }
    }

    /** Leaves nothing of it behind: the next test runs in the same JVM. */
    @Override
    public void close() {
        if (!isAlive()) {
            return;
        }
        interrupt();
        try {
            awaitEnd(END);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
    }
}
