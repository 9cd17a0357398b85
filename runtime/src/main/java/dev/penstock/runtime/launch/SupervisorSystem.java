package dev.penstock.runtime.launch;

import akka.actor.typed.ActorSystem;
import dev.penstock.actors.spi.RunOutcome;
import dev.penstock.actors.supervisor.PipelineSupervisor;
import dev.penstock.actors.supervisor.PipelineSupervisor.Command;
import java.time.Duration;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.function.Consumer;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** The end of an actor system whose guardian is a run's supervisor. */
final class SupervisorSystem {
    private static final Logger LOG = LoggerFactory.getLogger(SupervisorSystem.class);
    private static final Duration TERMINATION = Duration.ofSeconds(10);

    private SupervisorSystem() {}

    /**
     * Waits for the run's end. An interrupt of the waiting thread asks the run to end early, as the
     * user does; a second one leaves it alone.
     *
     * @param outcome that the supervisor completes
     * @param onInterrupt is given what to do when the user wants the run to end early
     */
    static RunOutcome await(
            ActorSystem<Command> system,
            CompletableFuture<RunOutcome> outcome,
            Consumer<Runnable> onInterrupt) {
        Runnable endEarly = () -> system.tell(new PipelineSupervisor.Interrupt());
        onInterrupt.accept(endEarly);
        system.getWhenTerminated()
                .whenComplete(
                        (_, _) ->
                                outcome.complete(
                                        new RunOutcome.Failed(
                                                0,
                                                "the supervisor ended unexpectedly, see the log")));
        try {
            try {
                return outcome.get();
            } catch (InterruptedException e) {
                endEarly.run();
                return outcome.get();
            }
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            throw new IllegalStateException("interrupted while waiting for the run", e);
        } catch (ExecutionException e) {
            throw new IllegalStateException("the run ended without an outcome", e);
        }
    }

    /** Ends the system; one that does not is left behind. */
    static void terminate(ActorSystem<Command> system) {
        system.terminate();
        try {
            system.getWhenTerminated()
                    .toCompletableFuture()
                    .get(TERMINATION.toMillis(), TimeUnit.MILLISECONDS);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        } catch (ExecutionException | TimeoutException e) {
            LOG.warn("the actor system did not end within {}", TERMINATION, e);
        }
    }
}
