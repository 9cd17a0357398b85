package dev.penstock.actors.dataplane.aeron;

import dev.penstock.actors.dataplane.Endpoint;
import dev.penstock.actors.dataplane.FrameKey;
import dev.penstock.actors.dataplane.Inbound;
import dev.penstock.actors.dataplane.OfferResult;
import dev.penstock.actors.dataplane.Outbound;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.locks.LockSupport;

/** Rank 1 in a process of its own: sends back whatever rank 0 sends, until its input ends. */
final class ForkedRank {
    private static final int SLOT_BYTES = 4 << 20;

    private ForkedRank() {}

    public static void main(String[] arguments) throws InterruptedException {
        AeronSettings settings = AeronSettings.ipc(Path.of(arguments[0]), 42);
        CountDownLatch inputEnded = new CountDownLatch(1);
        Thread.ofPlatform()
                .daemon()
                .start(
                        () -> {
                            awaitEndOfInput();
                            inputEnded.countDown();
                        });
        try (Arena arena = Arena.ofShared();
                AeronDataPlane plane = AeronDataPlane.start(settings)) {
            MemorySegment slot = arena.allocate(SLOT_BYTES, 64);
            Endpoint endpoint =
                    plane.open(
                            1,
                            List.of(new Inbound(TwoRanks.FORWARD, 0, 1, List.of(slot))),
                            List.of(new Outbound(TwoRanks.BACKWARD, 0, 1)),
                            new RecordingListener());
            int tensors = Integer.parseInt(arguments[1]);
            for (int i = 0; i < tensors && inputEnded.getCount() > 0; i++) {
                sendBack(endpoint, i, slot, inputEnded);
            }
            inputEnded.await();
        }
    }

    private static void sendBack(
            Endpoint endpoint, int microBatch, MemorySegment slot, CountDownLatch inputEnded) {
        while (endpoint.take(TwoRanks.forward(microBatch)) < 0) {
            if (inputEnded.getCount() == 0) {
                return;
            }
            LockSupport.parkNanos(20_000);
        }
        FrameKey back = new FrameKey(TwoRanks.BACKWARD, 1, microBatch, 0);
        OfferResult result = endpoint.offer(back, slot);
        while (!result.equals(OfferResult.SENT) && inputEnded.getCount() > 0) {
            LockSupport.parkNanos(20_000);
            result = endpoint.offer(back, slot);
        }
        endpoint.release(TwoRanks.FORWARD, 0);
    }

    private static void awaitEndOfInput() {
        try {
            while (System.in.read() >= 0) {
                Thread.onSpinWait();
            }
        } catch (IOException e) {
            Runtime.getRuntime().halt(4);
        }
    }

    /** Forks this class with the test's class path. */
    static Process fork(Path directory, int tensors) throws IOException {
        List<String> command = new ArrayList<>();
        command.add(Path.of(System.getProperty("java.home"), "bin", "java").toString());
        command.addAll(
                List.of(
                        "--add-exports=java.base/jdk.internal.misc=ALL-UNNAMED",
                        "--enable-native-access=ALL-UNNAMED",
                        "-XX:TieredStopAtLevel=1",
                        "-Xmx256m",
                        "-cp",
                        System.getProperty("java.class.path"),
                        ForkedRank.class.getName(),
                        directory.toString(),
                        Integer.toString(tensors)));
        return new ProcessBuilder(command)
                .redirectErrorStream(true)
                .redirectOutput(ProcessBuilder.Redirect.INHERIT)
                .start();
    }
}
