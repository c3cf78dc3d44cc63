// A collection of drawn birds for the pictures of the documentation: species differ in colours, beak and tail; pictures of
// one species in pose, place, light and ground. The same number gives the same picture.

export const SPECIES = {
  robin: {
    back: '#7d6548',
    belly: '#e9e0cf',
    breast: '#d9602b',
    head: '#7d6548',
    wing: '#5f4a34',
    beak: '#3b3129',
    tail: 1,
  },
  kingfisher: {
    back: '#1b86b8',
    belly: '#e58a3c',
    breast: '#e8a05a',
    head: '#1f6f9f',
    wing: '#12618c',
    beak: '#22252a',
    tail: 0.6,
    beakLength: 2.4,
    cheek: '#f4efe4',
  },
  goldfinch: {
    back: '#b08a5a',
    belly: '#efe6d6',
    breast: '#d9c2a0',
    head: '#c4262e',
    wing: '#1d1b1b',
    bar: '#f0c419',
    beak: '#d9cbb8',
    tail: 1,
  },
  'blue tit': {
    back: '#8fae5d',
    belly: '#f2d84b',
    breast: '#f2d84b',
    head: '#3f83c9',
    wing: '#3a76b5',
    bar: '#f5f5f0',
    beak: '#2d2d2d',
    tail: 0.9,
    cheek: '#f7f5ef',
    mask: '#1f2f4a',
  },
  bullfinch: {
    back: '#8b9099',
    belly: '#e5737a',
    breast: '#e2646d',
    head: '#17181b',
    wing: '#22252b',
    bar: '#d9dde2',
    beak: '#17181b',
    tail: 1,
    beakLength: 0.7,
  },
  blackbird: {
    back: '#1e1f22',
    belly: '#2a2b2f',
    breast: '#232427',
    head: '#191a1c',
    wing: '#101113',
    beak: '#f0a422',
    tail: 1.4,
    eye: '#f0a422',
  },
  siskin: {
    back: '#8f9a3f',
    belly: '#eef0d0',
    breast: '#d9d84a',
    head: '#2b2d20',
    wing: '#2d3021',
    bar: '#e4dc3f',
    beak: '#a08f74',
    tail: 0.9,
  },
  redstart: {
    back: '#7f8893',
    belly: '#efd9c2',
    breast: '#d9713a',
    head: '#8c95a0',
    wing: '#5c5a57',
    beak: '#22201e',
    tail: 1.2,
    tailColour: '#c9501f',
    mask: '#17181a',
  },
  nuthatch: {
    back: '#6f8aa5',
    belly: '#ecc79a',
    breast: '#f2dfc6',
    head: '#6f8aa5',
    wing: '#5b748d',
    beak: '#3a3f46',
    tail: 0.6,
    beakLength: 1.6,
    mask: '#1b1d20',
  },
  starling: {
    back: '#23303a',
    belly: '#2b3a3f',
    breast: '#2a4a45',
    head: '#2b2f4f',
    wing: '#3d352f',
    beak: '#e2b93b',
    tail: 0.8,
    beakLength: 1.5,
    spots: '#d9d2bd',
  },
  wren: {
    back: '#8a5a34',
    belly: '#cfae86',
    breast: '#c49b6e',
    head: '#7c4f2d',
    wing: '#6b4325',
    beak: '#5a4632',
    tail: 0.6,
    tailUp: 1,
    stripe: '#ecd9b8',
  },
  chaffinch: {
    back: '#8f5b41',
    belly: '#e3b49a',
    breast: '#d9967b',
    head: '#6f88a3',
    wing: '#2d2b2b',
    bar: '#f3f1ea',
    beak: '#7b8a99',
    tail: 1.1,
  },
};

// Runs in the page: draws one bird on a canvas of width x height and gives its JPEG as a data URL.
export function drawBird({ species, seed, width, height }) {
  let x0 = (seed * 2654435761 + 12345) >>> 0;
  const random = () => {
    // xorshift
    x0 ^= x0 << 13;
    x0 >>>= 0;
    x0 ^= x0 >>> 17;
    x0 ^= x0 << 5;
    x0 >>>= 0;
    return x0 / 4294967296;
  };
  for (let i = 0; i < 8; i++) random();
  const between = (a, b) => a + (b - a) * random();
  const canvas = document.createElement('canvas');
  canvas.width = width;
  canvas.height = height;
  const c = canvas.getContext('2d');
  const ramp = (x1, y1, x2, y2, ...stops) => {
    const g = c.createLinearGradient(x1, y1, x2, y2);
    stops.forEach((colour, i) => g.addColorStop(i / (stops.length - 1), colour));
    return g;
  };
  const blob = (x, y, rx, ry, angle, fill) => {
    c.beginPath();
    c.ellipse(x, y, rx, ry, angle, 0, 7);
    c.fillStyle = fill;
    c.fill();
  };

  // Ground and light.
  const grounds = [
    ['#bcd9ee', '#e9f1ee', '#cfe0c4'],
    ['#f3dcc2', '#f7ead9', '#d9c9a8'],
    ['#9fbf8f', '#c9dcb0', '#7f9f66'],
    ['#a9c7d3', '#dfe9ea', '#93a9ae'],
    ['#d7cfe4', '#efe6ea', '#b7b39a'],
    ['#6f8f78', '#a5bd93', '#4f6b4f'],
  ];
  const ground = grounds[Math.floor(random() * grounds.length)];
  c.fillStyle = ramp(0, 0, 0, height, ...ground);
  c.fillRect(0, 0, width, height);
  c.filter = `blur(${width / 30}px)`;
  for (let i = 0; i < 16; i++) {
    c.globalAlpha = between(0.15, 0.5);
    const r = between(0.05, 0.16) * width;
    blob(
      between(0, width),
      between(0, height),
      r,
      r,
      0,
      ['#ffffff', '#8fb36a', '#f3c98b', '#5f8a5a', '#e8f0d8', '#4f7a6a'][Math.floor(random() * 6)],
    );
  }
  c.filter = 'none';
  c.globalAlpha = 1;

  // A branch, and leaves behind the bird.
  const size = between(0.2, 0.3) * width,
    cx = between(0.36, 0.64) * width,
    cy = between(0.44, 0.56) * height;
  const perch = cy + size * 0.86,
    tilt = between(-0.12, 0.12);
  const leaf = (x, y, length, angle, colour) => {
    c.save();
    c.translate(x, y);
    c.rotate(angle);
    c.beginPath();
    c.moveTo(0, 0);
    c.quadraticCurveTo(length * 0.5, -length * 0.38, length, 0);
    c.quadraticCurveTo(length * 0.5, length * 0.38, 0, 0);
    c.fillStyle = colour;
    c.fill();
    c.strokeStyle = '#00000022';
    c.lineWidth = 1.5;
    c.beginPath();
    c.moveTo(0, 0);
    c.lineTo(length * 0.9, 0);
    c.stroke();
    c.restore();
  };
  const leaves = ['#5d8f3f', '#7aa54a', '#4a7a3f', '#93b45a', '#c98f3a', '#b8692f'];
  const green = Math.floor(random() * 3) + (random() < 0.3 ? 3 : 0);
  const branchY = (x) => perch + (x - cx) * tilt + Math.sin((x / width) * 5 + seed) * 6;
  c.lineCap = 'round';
  c.lineJoin = 'round';
  for (const [colour, thick] of [
    ['#3f2f22', 1],
    ['#6b5038', 0.72],
    ['#8a6a4a', 0.3],
  ]) {
    c.strokeStyle = colour;
    c.lineWidth = size * 0.13 * thick;
    c.beginPath();
    for (let x = -20; x <= width + 20; x += 12) c.lineTo(x, branchY(x) - (1 - thick) * size * 0.03);
    c.stroke();
  }
  for (let i = 0; i < 9; i++) {
    const x = between(0, width);
    if (Math.abs(x - cx) < size * 0.8) continue;
    leaf(
      x,
      branchY(x),
      between(0.25, 0.5) * size,
      between(-2.6, -0.4) + (random() < 0.3 ? 2.6 : 0),
      leaves[(green + (i % 2)) % 6],
    );
  }

  // The bird, looking to the right; half of them are mirrored.
  const s = species,
    u = size;
  c.save();
  c.translate(cx, cy);
  if (random() < 0.5) c.scale(-1, 1);
  c.rotate(between(-0.18, 0.12));
  const headX = 0.56 * u + between(-0.04, 0.05) * u,
    headY = -0.5 * u + between(-0.05, 0.06) * u;
  // Tail.
  c.save();
  c.translate(-0.72 * u, 0.22 * u);
  c.rotate(s.tailUp ? 1 : between(-0.1, 0.25) - 0.3);
  c.fillStyle = s.tailColour ?? s.wing;
  c.beginPath();
  c.moveTo(0.2 * u, -0.14 * u);
  c.lineTo(-0.72 * u * s.tail, -0.07 * u);
  c.lineTo(-0.66 * u * s.tail, 0.11 * u);
  c.lineTo(0.2 * u, 0.12 * u);
  c.fill();
  c.strokeStyle = '#0003';
  c.lineWidth = 2;
  c.beginPath();
  c.moveTo(0.1 * u, 0);
  c.lineTo(-0.66 * u * s.tail, 0.02 * u);
  c.stroke();
  c.restore();
  // Legs.
  c.strokeStyle = '#6b4a35';
  c.lineWidth = u * 0.045;
  for (const x of [-0.02, 0.2]) {
    c.beginPath();
    c.moveTo(x * u, 0.6 * u);
    c.lineTo((x + 0.03) * u, 0.88 * u);
    c.stroke();
  }
  // Body, from the back to the belly, with the breast in front.
  blob(0, 0.08 * u, 0.86 * u, 0.6 * u, -0.42, ramp(0, -0.6 * u, 0, 0.7 * u, s.back, s.back, s.belly, s.belly));
  c.save();
  c.beginPath();
  c.ellipse(0, 0.08 * u, 0.86 * u, 0.6 * u, -0.42, 0, 7);
  c.clip();
  const breast = c.createRadialGradient(0.5 * u, 0.02 * u, 0.08 * u, 0.46 * u, 0.06 * u, 0.62 * u);
  breast.addColorStop(0, s.breast);
  breast.addColorStop(0.75, s.breast);
  breast.addColorStop(1, `${s.breast}00`);
  c.fillStyle = breast;
  c.fillRect(-u, -u, 2 * u, 2 * u);
  if (s.spots)
    for (let i = 0; i < 46; i++) blob(between(-0.7, 0.8) * u, between(-0.4, 0.6) * u, 0.022 * u, 0.03 * u, 0, s.spots);
  c.fillStyle = ramp(0, -0.5 * u, 0, 0.75 * u, '#ffffff30', '#ffffff00', '#00000038');
  c.fillRect(-u, -u, 2 * u, 2 * u);
  c.restore();
  // Head.
  blob(
    headX,
    headY,
    0.39 * u,
    0.36 * u,
    0.1,
    ramp(headX, headY - 0.36 * u, headX, headY + 0.36 * u, s.head, s.head, s.cheek ?? s.head),
  );
  if (s.breast !== s.belly) {
    c.globalAlpha = 0.9;
    blob(headX + 0.06 * u, headY + 0.32 * u, 0.27 * u, 0.16 * u, -0.3, s.breast);
    c.globalAlpha = 1;
  }
  if (s.cheek) blob(headX + 0.02 * u, headY + 0.1 * u, 0.22 * u, 0.14 * u, 0.1, s.cheek);
  if (s.mask) {
    c.strokeStyle = s.mask;
    c.lineWidth = 0.09 * u;
    c.beginPath();
    c.moveTo(headX - 0.3 * u, headY + 0.04 * u);
    c.quadraticCurveTo(headX, headY - 0.08 * u, headX + 0.36 * u, headY + 0.02 * u);
    c.stroke();
  }
  if (s.stripe) {
    c.strokeStyle = s.stripe;
    c.lineWidth = 0.05 * u;
    c.beginPath();
    c.moveTo(headX - 0.26 * u, headY - 0.12 * u);
    c.quadraticCurveTo(headX, headY - 0.22 * u, headX + 0.3 * u, headY - 0.08 * u);
    c.stroke();
  }
  // Beak and eye.
  const reach = 0.26 * u * (s.beakLength ?? 1);
  c.fillStyle = s.beak;
  c.beginPath();
  c.moveTo(headX + 0.34 * u, headY - 0.09 * u);
  c.quadraticCurveTo(headX + 0.36 * u + reach * 0.6, headY - 0.05 * u, headX + 0.36 * u + reach, headY + 0.05 * u);
  c.quadraticCurveTo(headX + 0.36 * u + reach * 0.4, headY + 0.1 * u, headX + 0.32 * u, headY + 0.09 * u);
  c.fill();
  c.strokeStyle = '#0005';
  c.lineWidth = 1.5;
  c.beginPath();
  c.moveTo(headX + 0.35 * u, headY + 0.02 * u);
  c.lineTo(headX + 0.34 * u + reach, headY + 0.045 * u);
  c.stroke();
  if (s.eye) blob(headX + 0.13 * u, headY - 0.05 * u, 0.085 * u, 0.085 * u, 0, s.eye);
  blob(headX + 0.13 * u, headY - 0.05 * u, 0.062 * u, 0.062 * u, 0, '#0d0c0c');
  blob(headX + 0.15 * u, headY - 0.075 * u, 0.02 * u, 0.02 * u, 0, '#fff');
  // Wing, with feathers and perhaps a bar.
  c.save();
  c.translate(-0.1 * u, 0.06 * u);
  c.rotate(-0.34 + between(-0.08, 0.08));
  c.beginPath();
  c.moveTo(0.42 * u, -0.2 * u);
  c.quadraticCurveTo(-0.2 * u, -0.46 * u, -0.86 * u, 0.16 * u);
  c.quadraticCurveTo(-0.1 * u, 0.5 * u, 0.42 * u, -0.2 * u);
  c.fillStyle = ramp(0, -0.4 * u, 0, 0.35 * u, s.wing, s.wing);
  c.fill();
  c.save();
  c.clip();
  c.strokeStyle = '#ffffff2e';
  c.lineWidth = 2.2;
  for (let i = 0; i < 6; i++) {
    c.beginPath();
    c.moveTo(0.3 * u - i * 0.06 * u, -0.22 * u + i * 0.07 * u);
    c.quadraticCurveTo(-0.2 * u, -0.16 * u + i * 0.1 * u, -0.85 * u, 0.1 * u + i * 0.05 * u);
    c.stroke();
  }
  if (s.bar) {
    c.strokeStyle = s.bar;
    c.lineWidth = 0.1 * u;
    c.beginPath();
    c.moveTo(0.06 * u, -0.4 * u);
    c.quadraticCurveTo(-0.02 * u, 0, 0.05 * u, 0.36 * u);
    c.stroke();
  }
  c.restore();
  c.restore();
  c.restore();

  // The light of the day.
  c.globalCompositeOperation = 'soft-light';
  c.fillStyle = ramp(0, 0, width, height, random() < 0.5 ? '#fff1d6' : '#dcebff', '#1b2a3a');
  c.globalAlpha = between(0.2, 0.6);
  c.fillRect(0, 0, width, height);
  return canvas.toDataURL('image/jpeg', 0.88);
}

// All pictures of the collection: calls put(path, JPEG). Wants a page of a browser.
export async function drawBirds(page, each, put) {
  let seed = 1;
  for (const [name, species] of Object.entries(SPECIES))
    for (let i = 0; i < each; i++, seed++) {
      const [width, height] = [
        [480, 360],
        [400, 400],
        [360, 450],
      ][seed % 7 === 0 ? 2 : seed % 3 === 0 ? 1 : 0];
      const url = await page.evaluate(drawBird, { species, seed: seed * 7919, width, height });
      await put(
        `${name.replace(' ', '-')}/${String(seed).padStart(4, '0')}.jpg`,
        Buffer.from(url.split(',')[1], 'base64'),
      );
    }
}
