package dev.penstock.actors.cluster;

import akka.actor.typed.ActorRef;
import dev.penstock.actors.spi.ProcessSupply;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;

/** A run's supervisor gets what it needs from the run's keeper. */
record KeeperSupply(ActorRef<RunManager.Command> keeper) implements ProcessSupply {
    @Override
    public void start(Optional<Integer> rank) {
        rank.ifPresent(one -> keeper.tell(new RunManager.StartRank(one)));
    }

    @Override
    public void placed(int rank, String node, long pid) {
        keeper.tell(new RunManager.RankPlaced(rank, node, pid));
    }

    @Override
    public CompletionStage<Boolean> takeIn(Map<Integer, String> processes) {
        CompletableFuture<Boolean> answer = new CompletableFuture<>();
        keeper.tell(new RunManager.TakeIn(processes, answer));
        return answer;
    }

    @Override
    public void restartLink() {
        keeper.tell(new RunManager.RestartLink());
    }
}
