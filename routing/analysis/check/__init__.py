"""From a folder of exports to the answer: what is not on its way, why, what is near, and what to do."""
