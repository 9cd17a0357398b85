package dev.penstock.actors.supervisor;

import static org.assertj.core.api.Assertions.assertThat;

import dev.penstock.actors.spi.RunListener;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import org.junit.jupiter.api.Test;

class ListenerThreadTest {
    private final List<String> heard = Collections.synchronizedList(new ArrayList<>());
    private final RunListener listener =
            new RunListener() {
                @Override
                public void onStall(String report) {
                    heard.add(report);
                }
            };

    @Test
    void whatIsToldBeforeTheEndIsHeardAndWhatComesAfterItIsNot() throws Exception {
        var thread = new ListenerThread(listener, e -> heard.add("failed: " + e));
        var over = new CountDownLatch(1);

        thread.tell(to -> to.onStall("first"));
        thread.tell(to -> to.onStall("second"));
        thread.end(
                () -> {
                    heard.add("end");
                    over.countDown();
                });
        thread.tell(to -> to.onStall("late"));
        thread.end(() -> heard.add("another end"));
        over.await();

        assertThat(heard).containsExactly("first", "second", "end");
        assertThat(thread.behind()).isZero();
    }

    @Test
    void aListenerThatThrowsIsToldOfAndHearsTheNextEvent() throws Exception {
        var thread = new ListenerThread(listener, e -> heard.add("failed: " + e.getMessage()));
        var over = new CountDownLatch(1);

        thread.tell(
                to -> {
                    throw new IllegalStateException("full disk");
                });
        thread.tell(to -> to.onStall("next"));
        thread.end(over::countDown);
        over.await();

        assertThat(heard).containsExactly("failed: full disk", "next");
    }
}
