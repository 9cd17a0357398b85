package samples;

import com.sun.net.httpserver.HttpServer;
import dev.penstock.Generation;
import dev.penstock.Penstock;
import dev.penstock.PenstockException;
import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.nio.file.Path;

/**
 * Serves a model twice: in OpenAI's protocol on a port of its own, and as one answer of a service
 * that has others. The model of the sample beside this one will do.
 */
public final class WebService {
    private WebService() {}

    public static void main(String[] arguments) throws IOException, InterruptedException {
        try (var model = Penstock.open(Path.of(arguments[0]));
                var openAi = model.serve(0)) {
            var own = HttpServer.create(new InetSocketAddress(InetAddress.getLoopbackAddress(), 0), 0);
            own.createContext(
                    "/continue/",
                    exchange -> {
                        String prompt = exchange.getRequestURI().getPath().substring(10);
                        int status = 200;
                        String answer;
                        try {
                            answer = model.generate(prompt, Generation.of(40)).text();
                        } catch (PenstockException e) {
                            status = 400;
                            answer = e.getMessage();
                        }
                        byte[] body = answer.getBytes();
                        exchange.sendResponseHeaders(status, body.length);
                        try (var out = exchange.getResponseBody()) {
                            out.write(body);
                        }
                    });
            own.start();
            System.out.println("in OpenAI's protocol: " + openAi.address());
            System.out.printf("as text: http://127.0.0.1:%d/continue/the%%20valve%%20%n", own.getAddress().getPort());
            openAi.await();
        }
    }
}
