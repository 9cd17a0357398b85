package dev.penstock.actors.cluster;

import dev.penstock.actors.spi.ProcessSupply;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import java.util.function.Consumer;

/** A run's supervisor gets what it needs from whoever keeps the cluster's runs. */
record KeeperSupply(Consumer<RunManager.Said> keeper) implements ProcessSupply {
    @Override
    public void start(Optional<Integer> rank) {
        rank.ifPresent(one -> keeper.accept(new RunManager.StartRank(one)));
    }

    @Override
    public void placed(int rank, String process, long pid) {
        keeper.accept(new RunManager.RankPlaced(rank, process));
    }

    @Override
    public CompletionStage<Boolean> takeIn(Map<Integer, String> processes) {
        CompletableFuture<Boolean> answer = new CompletableFuture<>();
        keeper.accept(new RunManager.TakeIn(processes, answer));
        return answer;
    }

    @Override
    public void restartLink(Set<String> gone) {
        keeper.accept(new RunManager.RestartLink(gone));
    }
}
