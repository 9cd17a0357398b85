package dev.penstock.runtime.launch;

import akka.actor.typed.ActorSystem;
import akka.actor.typed.Behavior;
import akka.actor.typed.javadsl.Behaviors;
import dev.penstock.actors.dataplane.DataPlane;
import dev.penstock.actors.dataplane.aeron.MediaDriverHandle;
import dev.penstock.actors.node.NodeActor;
import dev.penstock.actors.node.NodeInfo;
import dev.penstock.actors.rank.RankResources;
import dev.penstock.actors.spi.RunOutcome;
import dev.penstock.actors.supervisor.PipelineSupervisor.Command;
import java.nio.file.Path;
import java.util.Optional;
import java.util.concurrent.CompletableFuture;
import java.util.function.Consumer;
import java.util.function.Function;
import java.util.function.Supplier;

/**
 * A run all of whose ranks live in this process: a media driver, a node and a supervisor.
 *
 * @param driver starts the media driver
 * @param dataPlane joins the driver in a directory
 * @param resources what the ranks are given
 */
public record InProcessRun(
        Supplier<MediaDriverHandle> driver,
        Function<Path, DataPlane> dataPlane,
        Function<DataPlane, RankResources> resources) {

    /**
     * Runs and waits for the end; deadlines are the supervisor's.
     *
     * @param supervisor made of what it completes at the end
     * @param onInterrupt is given what to do when the user wants the run to end early
     */
    public RunOutcome run(
            Function<CompletableFuture<RunOutcome>, Behavior<Command>> supervisor,
            Consumer<Runnable> onInterrupt) {
        var outcome = new CompletableFuture<RunOutcome>();
        try (MediaDriverHandle started = driver.get();
                DataPlane joined = dataPlane.apply(started.directory())) {
            var info =
                    new NodeInfo(
                            "this process",
                            ProcessHandle.current().pid(),
                            0,
                            BuiltVersion.text(),
                            Optional.empty(),
                            false,
                            Optional.empty());
            Behavior<Command> guardian =
                    Behaviors.setup(
                            context -> {
                                context.spawn(
                                        NodeActor.create(info, resources.apply(joined)), "node");
                                return supervisor.apply(outcome);
                            });
            ActorSystem<Command> system = ActorSystems.local(guardian);
            try {
                return SupervisorSystem.await(system, outcome, onInterrupt);
            } finally {
                SupervisorSystem.terminate(system);
            }
        }
    }
}
