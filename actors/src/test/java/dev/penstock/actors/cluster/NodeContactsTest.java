package dev.penstock.actors.cluster;

import akka.actor.testkit.typed.javadsl.ActorTestKit;
import akka.actor.testkit.typed.javadsl.TestProbe;
import java.util.List;
import java.util.Set;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

class NodeContactsTest {
    private final ActorTestKit kit = ActorTestKit.create();
    private final TestProbe<ClusterNode.Command> known = kit.createTestProbe();
    private final TestProbe<ClusterNode.Command> fresh = kit.createTestProbe();
    private final NodeContacts contacts =
            new NodeContacts(
                    "host", kit.<ClusterNode.Introduction>createTestProbe().getRef(), _ -> {});

    /** With each node that comes all are listed again. */
    @Test
    void whoHasSaidWhoItIsIsNotAskedAgain() {
        contacts.ask(Set.of(known.getRef()));
        known.expectMessageClass(ClusterNode.Introduce.class);
        var introduction =
                new ClusterNode.Introduction(
                        new NodeOffer("a", "a", "host", 1, 7, "0.1", List.of("cpu"), 1, 1),
                        known.getRef());
        contacts.add(introduction);

        contacts.ask(Set.of(known.getRef(), fresh.getRef()));

        fresh.expectMessageClass(ClusterNode.Introduce.class);
        known.expectNoMessage();
        contacts.remove(introduction);
        contacts.ask(Set.of(known.getRef()));
        known.expectMessageClass(ClusterNode.Introduce.class);
    }

    @AfterEach
    void close() {
        contacts.close();
        kit.shutdownTestKit();
    }
}
