package dev.penstock.runtime.cluster;

import akka.actor.ActorSystem;
import akka.cluster.Cluster;
import akka.cluster.ClusterEvent.CurrentClusterState;
import akka.cluster.Member;
import akka.cluster.MemberStatus;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import java.util.function.Supplier;
import java.util.stream.StreamSupport;

/**
 * Whether a node may be given work: it is a member, and a seed that could place ranks on it, or
 * take a run from a client, is one and answers. Asked by {@code /ready}.
 */
public final class NodeReadiness implements Supplier<CompletionStage<Boolean>> {
    private final Cluster cluster;

    /** Made by Akka. */
    public NodeReadiness(ActorSystem system) {
        this.cluster = Cluster.get(system);
    }

    @Override
    public CompletionStage<Boolean> get() {
        CurrentClusterState state = cluster.state();
        return CompletableFuture.completedFuture(
                cluster.selfMember().status().equals(MemberStatus.up())
                        && StreamSupport.stream(state.getMembers().spliterator(), false)
                                .anyMatch(member -> isSeedThatAnswers(member, state)));
    }

    private static boolean isSeedThatAnswers(Member member, CurrentClusterState state) {
        return member.hasRole(NodeSystems.SEED_ROLE)
                && member.status().equals(MemberStatus.up())
                && !state.getUnreachable().contains(member);
    }
}
