package dev.penstock.runtime.serve;

import org.jspecify.annotations.Nullable;

/** A request that is not served, in the words of OpenAI's protocol. */
final class ApiException extends RuntimeException {
    private static final long serialVersionUID = 1L;

    private final int status;
    private final String code;
    private final @Nullable String param;

    ApiException(int status, String code, @Nullable String param, String message) {
        super(message);
        this.status = status;
        this.code = code;
        this.param = param;
    }

    /** A value that is not as expected. */
    static ApiException badValue(String param, String expected, String got) {
        return new ApiException(
                400,
                "invalid_value",
                param,
                "%s: expected %s, got %s".formatted(param, expected, got));
    }

    /** The server ends, or its pipeline has failed. */
    static ApiException ending() {
        return new ApiException(503, "server_ending", null, "the server is ending");
    }

    /**
     * The pipeline does not work at the moment.
     *
     * @param cause what happened, in a sentence
     */
    static ApiException interrupted(String cause) {
        return new ApiException(
                503,
                "pipeline_interrupted",
                null,
                "the model's pipeline was interrupted and comes back when all its ranks are there: "
                        + cause);
    }

    int status() {
        return status;
    }

    String code() {
        return code;
    }

    @Nullable String param() {
        return param;
    }

    /** Returns the type that OpenAI gives to such errors. */
    String type() {
        return switch (status) {
            case 401 -> "authentication_error";
            case 429 -> "rate_limit_error";
            case 500, 503 -> "server_error";
            default -> "invalid_request_error";
        };
    }
}
