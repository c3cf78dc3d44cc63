// Runs ONNX models with ONNX Runtime for test_onnx.c: node onnx_run.js LIST
// A line of LIST is MODEL INPUT OUTPUT DIM…: float32 [DIM…] is read from INPUT, and what the model makes of it goes to OUTPUT.
"use strict";
const fs = require("fs");
const ort = require("onnxruntime-node");

async function run(line) {
    const [model, input, output, ...dims] = line.split(" ");
    const session = await ort.InferenceSession.create(model, { intraOpNumThreads: 1 });
    const bytes = fs.readFileSync(input);
    const values = new Float32Array(bytes.buffer, bytes.byteOffset, bytes.length / 4);
    const feeds = { [session.inputNames[0]]: new ort.Tensor("float32", values, dims.map(Number)) };
    const made = (await session.run(feeds))[session.outputNames[0]];
    fs.writeFileSync(output, Buffer.from(made.data.buffer, made.data.byteOffset, made.data.byteLength));
    console.log(`${session.inputNames[0]} ${session.outputNames[0]} ${made.dims.join(" ")}`);
}

(async () => {
    for (const line of fs.readFileSync(process.argv[2], "utf8").split("\n")) {
        if (line) await run(line);
    }
})().catch((why) => {
    console.error(String(why));
    process.exit(1);
});
